import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { CHANNEL_FAULTS, expectRefused, startCall, timeAbort } from '../support/failing-calls.js'
import { errorOf, openRaw, type RawAnswer, sendRaw, TEST_KEY } from '../support/gateway.js'
import { eventually } from '../support/eventually.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askLimits } from '../support/limited-gateway.js'
import { type P1Gateway, startP1Gateway, withP1Gateway } from '../support/provider-gateways.js'
import {
  askResponse,
  LIMITED_KEY,
  OTHER_KEY,
  RESPONSES_KEYS,
  RESPONSES_MODEL,
  RESPONSES_PATH,
  sendResponse,
} from '../support/responses-lab.js'
import { deleteResponse, openai6, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { dataDirectory } from '../support/stores.js'
import { recordWhere } from '../support/usage-lab.js'

const USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 2 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 12,
}

/** As an upstream of this dialect makes it, with an id that no test has used. */
let made = 0
function response(more: object = {}) {
  const number = String(++made).padStart(8, '0')
  const message = { id: `msg_${number}`, type: 'message', role: 'assistant', status: 'completed', content: [] }
  const base = { id: `resp_${number}`, object: 'response', created_at: 1, status: 'completed', model: RESPONSES_MODEL }
  return { ...base, output: [{ id: `rs_${number}`, type: 'reasoning', summary: [] }, message], usage: USAGE, ...more }
}

const answered = (type: string, body: string): Fault => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': type },
  body,
})
const whole = (value: object): Fault => answered('application/json', JSON.stringify(value))
const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
const stream = (...events: readonly string[]): Fault => answered('text/event-stream', events.join(''))
const created = (value: object): string =>
  event('response.created', {
    sequence_number: 0,
    response: { ...value, status: 'in_progress', output: [], usage: null },
  })
const delta = event('response.output_text.delta', { sequence_number: 1, delta: 'Hello', output_index: 0 })
const ended = (name: string, value: object): string =>
  event(`response.${name}`, { sequence_number: 2, response: value })

const requestText = (more: object = {}): string => JSON.stringify({ model: RESPONSES_MODEL, input: 'Hello', ...more })
const create = ({ gateway }: P1Gateway, more: object = {}, key = TEST_KEY): Promise<RawAnswer> =>
  sendResponse(gateway, { model: RESPONSES_MODEL, input: 'Hello', ...more }, key)
const ask = ({ gateway }: P1Gateway, method: string, path: string, key = TEST_KEY): Promise<RawAnswer> =>
  askResponse(gateway, method, path, key)

/** A response that the upstream keeps for the key. */
async function kept(lab: P1Gateway, more: object = {}): Promise<ReturnType<typeof response>> {
  const value = response()
  lab.simulator.queueFault(whole(value))
  expect((await create(lab, more)).status).toBe(200)
  return value
}

describe('responses', () => {
  let lab: P1Gateway
  const prices = [{ models: ['gpt-*'], promptTokens: 1_000_000, completionTokens: 1_000_000 }]
  shareLab(async () => (lab = await startP1Gateway({ keys: RESPONSES_KEYS, sections: { database: {}, prices } })))

  describe('an answer', () => {
    it('comes byte for byte, as the request went, and is recorded with what its upstream says', async () => {
      const text = `{ "id" : "resp_bytes",\n "output":[], "usage":${JSON.stringify(USAGE)}, "n":1.50 }\n`
      lab.simulator.queueFault(answered('application/json', text))
      const body = `{ "input" : "caf\\u00e9",\t"model":"${RESPONSES_MODEL}", "later":1e3 }`
      const answer = await sendRaw(lab.gateway.url, { path: RESPONSES_PATH, body })
      expect(answer.text).toBe(text)
      expect(lab.simulator.lastRequest?.path).toBe(RESPONSES_PATH)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
      const id = String(answer.headers['x-request-id'])
      const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
      const units = { prompt_tokens: 7, cached_tokens: 2, completion_tokens: 5, reasoning_tokens: 3 }
      expect(record).toMatchObject({ route: RESPONSES_PATH, model: RESPONSES_MODEL, outcome: 'ok', cost: '12', units })
    })

    it('has only the name of its model replaced where a channel maps it', async () => {
      await withP1Gateway({ channel: { modelMap: { [RESPONSES_MODEL]: 'other-model' } } }, async (mapped) => {
        mapped.simulator.queueFault(whole(response()))
        await create(mapped)
        expect(mapped.simulator.lastRequest?.body.toString()).toBe(requestText({ model: 'other-model' }))
      })
    })

    it('that is large is relayed as it comes, and is kept', async () => {
      const value = response({ filler: 'ä'.repeat(1_500_000), usage: USAGE })
      lab.simulator.queueFault(whole(value))
      const answer = await create(lab)
      expect(answer.complete).toBe(true)
      expect(answer.body.equals(Buffer.from(JSON.stringify(value)))).toBe(true)
      lab.simulator.queueFault(whole(value))
      expect((await ask(lab, 'GET', value.id)).status).toBe(200)
    })
  })

  describe.each(OPENAI_CLIENTS)('with %s', (_name, makeClient) => {
    it('are whole or streamed, and go on from one another', async () => {
      const client = makeClient(lab.gateway)
      const first = await client.responses.create({ model: RESPONSES_MODEL, input: 'Hello' })
      expect(first.output_text).toContain('Hello')
      const next = await client.responses.create({
        model: RESPONSES_MODEL,
        input: 'And now?',
        previous_response_id: first.id,
        stream: true,
      })
      const types: string[] = []
      for await (const { type } of next) types.push(type)
      expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed'])
      expect(lab.simulator.violations).toEqual([])
    })

    it('are read, listed and deleted', async () => {
      const client = makeClient(lab.gateway)
      const { responses } = client
      const { id, output } = await responses.create({ model: RESPONSES_MODEL, input: 'Hello' })
      expect((await responses.retrieve(id)).output).toEqual(output)
      expect((await responses.inputItems.list(id)).data).toHaveLength(1)
      await deleteResponse(client, id)
      await expect(responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    })

    it('call tools, whose answers go back by id', async () => {
      const { responses } = makeClient(lab.gateway)
      const parameters = { type: 'object', properties: {} }
      const weather = { type: 'function', name: 'get_weather', parameters, strict: false } as const
      const first = await responses.create({ model: RESPONSES_MODEL, input: 'get_weather please', tools: [weather] })
      const call = first.output.find((item) => item.type === 'function_call')
      const output = { type: 'function_call_output', call_id: String(call?.call_id), output: 'sunny' } as const
      const params = { model: RESPONSES_MODEL, input: [output], previous_response_id: first.id, tools: [weather] }
      expect((await responses.create(params)).status).toBe('completed')
    })

    it('tell nothing to the stream that breaks in the middle but an error', async () => {
      const params = { model: RESPONSES_MODEL, input: '#cut', stream: true } as const
      const stream = await makeClient(lab.gateway, { maxRetries: 0 }).responses.create(params)
      const types: string[] = []
      const read = async (): Promise<void> => {
        for await (const { type } of stream) types.push(type)
      }
      await expect(read()).rejects.toThrow()
      expect(types).not.toContain('response.completed')
    })
  })

  describe('a stream', () => {
    const streamed = (fault: Fault): Promise<RawAnswer> => {
      lab.simulator.queueFault(fault)
      return create(lab, { stream: true })
    }

    it.each(['completed', 'incomplete'])(
      'that ends with response.%s comes byte for byte and is recorded',
      async (name) => {
        const value = response()
        const events = [created(value), ': comment\n\n', delta, ended(name, value)]
        const answer = await streamed(stream(...events))
        expect(answer.text).toBe(events.join(''))
        const id = String(answer.headers['x-request-id'])
        const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
        expect(record).toMatchObject({ outcome: 'ok', cost: '12' })
        lab.simulator.queueFault(whole(value))
        expect((await ask(lab, 'GET', value.id)).status).toBe(200)
      },
    )

    it('that failed says so, and costs nothing that its upstream has not said', async () => {
      const value = response({ status: 'failed', usage: null })
      const answer = await streamed(stream(created(value), delta, ended('failed', value)))
      expect(answer.text).toContain('event: response.failed')
      const id = String(answer.headers['x-request-id'])
      expect(await recordWhere(lab.gateway, ({ request_id }) => request_id === id)).toMatchObject({ cost: '0' })
    })

    it.each([
      ['a cut', ''],
      ['an error as the upstream sends it', event('error', { sequence_number: 2, error: { message: 'Bad luck.' } })],
      ['an error in the members of its event', event('error', { sequence_number: 2, code: 'x', message: 'Bad luck.' })],
    ])('never looks complete after %s', async (_what, end) => {
      const answer = await streamed(stream(created(response()), delta, end))
      expect(answer.text).not.toContain('response.completed')
      expect(answer.text).toMatch(/"(error|code)":.*"message":/)
    })

    it('whose last event is large comes byte for byte, and is kept', async () => {
      const value = response({ filler: 'ä'.repeat(2_500_000) })
      const events = [created(value), delta, ended('completed', value)]
      const answer = await streamed(stream(...events))
      expect(answer.body.equals(Buffer.from(events.join('')))).toBe(true)
      lab.simulator.queueFault(whole(value))
      expect((await ask(lab, 'GET', value.id)).status).toBe(200)
    })

    it('whose caller leaves is charged for what has passed', async () => {
      lab.simulator.queueFault('slow')
      const id = 'left-in-the-middle'
      const body = requestText({ stream: true, input: '#words=40 Hello' })
      const aborted = lab.simulator.nextAbort()
      const answer = await openRaw(lab.gateway.url, { path: RESPONSES_PATH, body, headers: { 'x-request-id': id } })
      let text = ''
      for await (const chunk of answer) {
        text += String(chunk)
        if (text.split('response.output_text.delta').length > 4) break
      }
      await aborted
      const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
      expect(record).toMatchObject({ outcome: 'caller_left', reported: null, pricing: 'priced' })
      expect(record.units['prompt_tokens']).toBe(Math.ceil('#words=40 Hello'.length / 4) + 4 + 3)
      expect(record.units['completion_tokens']).toBeGreaterThan(1)
    })

    it('is estimated where its upstream says nothing of its usage', async () => {
      const value = response({ usage: null })
      const answer = await streamed(stream(created(value), delta, delta, ended('completed', value)))
      const id = String(answer.headers['x-request-id'])
      const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
      expect(record).toMatchObject({ outcome: 'ok', estimated: { output_tokens: 2 } })
    })
  })

  describe('what an upstream keeps', () => {
    it('is read, listed and deleted by the key that asked for it', async () => {
      const { id } = await kept(lab)
      const text = '{ "id" : "as the upstream says" }'
      lab.simulator.queueFault(answered('application/json', text))
      expect((await ask(lab, 'GET', `${id}?include[]=reasoning.encrypted_content&secret=1`)).text).toBe(text)
      expect(lab.simulator.lastRequest?.path).toBe(`${RESPONSES_PATH}/${id}`)
      expect([...(lab.simulator.lastRequest?.query ?? [])]).toEqual([['include[]', 'reasoning.encrypted_content']])
      lab.simulator.queueFault(answered('application/json', '{"object":"list","data":[]}'))
      expect((await ask(lab, 'GET', `${id}/input_items?limit=2&order=asc`)).status).toBe(200)
      expect(lab.simulator.lastRequest?.path).toBe(`${RESPONSES_PATH}/${id}/input_items`)
      expect(lab.simulator.lastRequest?.query.toString()).toBe('limit=2&order=asc')
      lab.simulator.queueFault(answered('application/json', `{"id":"${id}","object":"response","deleted":true}`))
      expect((await ask(lab, 'DELETE', id)).text).toContain('"deleted":true')
      expect(lab.simulator.lastRequest?.method).toBe('DELETE')
      expect((await ask(lab, 'GET', id)).status).toBe(404)
    })

    it('is not there for another key, and is in no conversation of it', async () => {
      const { id } = await kept(lab)
      lab.simulator.reset()
      for (const [method, path] of [
        ['GET', id],
        ['GET', `${id}/input_items`],
        ['DELETE', id],
      ] as const) {
        const answer = await ask(lab, method, path, OTHER_KEY)
        expect([answer.status, errorOf(answer).message]).toEqual([404, `Response with id '${id}' not found.`])
      }
      const next = await create(lab, { previous_response_id: id }, OTHER_KEY)
      expect(next.status).toBe(400)
      expect(errorOf(next)).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
      const input = [{ type: 'item_reference', id: id.replace('resp', 'msg') }]
      expect((await create(lab, { input }, OTHER_KEY)).status).toBe(404)
      expect(lab.simulator.requests).toEqual([])
    })

    it('is gone on with by its id, and by those of its items', async () => {
      const { id, output } = await kept(lab)
      const [reasoning, message] = output
      for (const more of [
        { previous_response_id: id },
        { input: [{ type: 'item_reference', id: message?.id }] },
        { input: [{ id: message?.id }] },
        { input: [{ type: 'reasoning', id: reasoning?.id, summary: [] }] },
      ]) {
        lab.simulator.queueFault(whole(response()))
        expect((await create(lab, more)).status).toBe(200)
      }
    })

    it('may be a picture, which is referred to without its bytes', async () => {
      const picture = { id: 'ig_00000001', type: 'image_generation_call', status: 'completed', result: 'AAAA' }
      lab.simulator.queueFault(whole(response({ output: [picture] })))
      expect((await create(lab)).status).toBe(200)
      lab.simulator.queueFault(whole(response()))
      const input = [{ type: picture.type, id: picture.id }]
      expect((await create(lab, { input })).status).toBe(200)
      lab.simulator.reset()
      expect((await create(lab, { input }, OTHER_KEY)).status).toBe(404)
      expect(lab.simulator.requests).toEqual([])
    })

    it('is made once: its request is sent to no upstream again that may have done it', async () => {
      await withP1Gateway({ keys: RESPONSES_KEYS, sections: { database: {} }, withSecond: true }, async (two) => {
        two.simulator.queueFault('reset')
        const answer = await create(two)
        expect([answer.status, errorOf(answer).code]).toEqual([502, 'upstream_failed'])
        expect(answer.headers['x-should-retry']).toBe('false')
        expect([two.simulator.requests.length, two.second.requests.length]).toEqual([1, 0])
        two.simulator.queueFault('reset')
        expect((await create(two, { store: false })).status).toBe(200)
        expect(two.second.requests).toHaveLength(1)
      })
    })

    it('on two channels is not referred to at once', async () => {
      await withP1Gateway({ keys: RESPONSES_KEYS, sections: { database: {} }, withSecond: true }, async (two) => {
        const onFirst = await kept(two)
        two.simulator.queueFault('503')
        const onSecond = response()
        two.second.queueFault(whole(onSecond))
        expect((await create(two)).status).toBe(200)
        two.simulator.reset()
        two.second.reset()
        const input = [{ type: 'item_reference', id: onSecond.output.at(-1)?.id }]
        const answer = await create(two, { previous_response_id: onFirst.id, input })
        expect([answer.status, errorOf(answer)]).toMatchObject([400, { param: 'input', code: 'unsupported_value' }])
        expect([two.simulator.requests, two.second.requests]).toEqual([[], []])
      })
    })

    it('cannot be gone on with where the store is away, and its answer passes', async () => {
      await withP1Gateway({ dataDirectory: '/dev/null/no-directory' }, async (without) => {
        for (const more of [{}, { stream: true }]) {
          const { status, complete, text } = await create(without, more)
          expect([status, complete, text.includes('"completed"')]).toEqual([200, true, true])
        }
        expect(without.gateway.logText().split('a response could not be kept')).toHaveLength(3)
        without.simulator.reset()
        const next = await create(without, { previous_response_id: 'resp_1' })
        expect([next.status, errorOf(next).code]).toEqual([503, 'overloaded'])
        expect(without.simulator.requests).toEqual([])
      })
    })

    it('is nothing where store is false', async () => {
      const { id } = await kept(lab, { store: false })
      expect((await ask(lab, 'GET', id)).status).toBe(404)
    })

    it('may be sent along instead: sealed reasoning and whole items need not be known', async () => {
      lab.simulator.queueFault(whole(response()))
      const sealed = { type: 'reasoning', id: 'rs_of_another', summary: [], encrypted_content: 'sealed' }
      const said = { type: 'message', id: 'msg_of_another', role: 'assistant', content: 'Hello' }
      expect((await create(lab, { input: [sealed, said, { role: 'user', content: 'Hello' }] })).status).toBe(200)
    })

    it.each(['resp_1?stream=1', 'resp_1?stream=true&stream=false', 'resp_1/input_items?stream=true'])(
      'is not asked for as a stream: %s',
      async (path) => {
        const answer = await ask(lab, 'GET', path)
        expect([answer.status, errorOf(answer).param]).toEqual([400, 'stream'])
      },
    )

    it('is asked for without one where that is said', async () => {
      const { id } = await kept(lab)
      lab.simulator.queueFault(whole(response()))
      expect((await ask(lab, 'GET', `${id}?stream=false`)).status).toBe(200)
      expect(lab.simulator.lastRequest?.query.size).toBe(0)
    })

    it.each(['resp_unknown', '..%2fmodels', '%00', 'a'.repeat(200)])('is nothing under the id %s', async (id) => {
      expect((await ask(lab, 'GET', id)).status).toBe(404)
      expect(lab.simulator.requests).toEqual([])
    })

    it('is known after a restart, and on the channel that has it', async () => {
      const directory = await dataDirectory()
      const options = { keys: RESPONSES_KEYS, sections: { database: {} }, dataDirectory: directory, withSecond: true }
      let id = ''
      await withP1Gateway(options, async (first) => {
        first.simulator.queueFault('503')
        const value = response()
        first.second.queueFault(whole(value))
        expect((await create(first)).status).toBe(200)
        id = value.id
      })
      await withP1Gateway(options, async (next) => {
        next.second.queueFault(whole(response()))
        expect((await create(next, { previous_response_id: id })).status).toBe(200)
        next.second.queueFault(whole(response()))
        expect((await ask(next, 'GET', id)).status).toBe(200)
        expect(next.simulator.requests).toEqual([])
      })
      await rm(directory, { recursive: true })
    })
  })

  describe('the tokens of a request', () => {
    it('are counted by the upstream, and cost nothing', async () => {
      const text = '{"object":"response.input_tokens","input_tokens":11}'
      lab.simulator.queueFault(answered('application/json', text))
      const answer = await sendRaw(lab.gateway.url, { path: `${RESPONSES_PATH}/input_tokens`, body: requestText() })
      expect(answer.text).toBe(text)
      const id = String(answer.headers['x-request-id'])
      expect(await recordWhere(lab.gateway, ({ request_id }) => request_id === id)).toMatchObject({ cost: '0' })
      expect(lab.simulator.lastRequest?.path).toBe(`${RESPONSES_PATH}/input_tokens`)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(requestText())
    })

    it('are counted with the conversation before it, and for nobody else', async () => {
      const client = openai6(lab.gateway)
      const { id } = await client.responses.create({ model: RESPONSES_MODEL, input: 'Hello' })
      const params = { model: RESPONSES_MODEL, input: 'And now?' }
      const alone = await client.responses.inputTokens.count(params)
      const behind = await client.responses.inputTokens.count({ ...params, previous_response_id: id })
      expect(behind.input_tokens).toBeGreaterThan(alone.input_tokens)
      const other = openai6(lab.gateway, { apiKey: OTHER_KEY })
      const refused = other.responses.inputTokens.count({ ...params, previous_response_id: id })
      await expect(refused).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
    })
  })

  describe('of a key with a limit of tokens', () => {
    const path = RESPONSES_PATH
    const headers = { authorization: `Bearer ${LIMITED_KEY}` }
    const left = async (): Promise<number> =>
      (await askLimits(lab.gateway.url, LIMITED_KEY)).limits['tokensPerMinute']?.remaining ?? NaN

    it.each([
      ['a whole answer', {}, (value: object) => whole(value)],
      ['a stream', { stream: true }, (value: object) => stream(created(value), delta, ended('completed', value))],
    ])('reserve what they may take at most, and are settled by what was used: %s', async (_kind, more, answerOf) => {
      const before = await left()
      lab.simulator.queueFault(answerOf(response()))
      const body = requestText({ max_output_tokens: 200, ...more })
      const answer = await sendRaw(lab.gateway.url, { path, headers, body })
      expect(answer.status).toBe(200)
      const reserved = Math.ceil(body.length / 4) + 200
      expect(answer.headers['x-ratelimit-remaining-tokens']).toBe(String(before - reserved))
      await eventually(async () => (await left()) === before - USAGE.total_tokens)
    })

    it('are refused where they may take more than the limit', async () => {
      const body = requestText({ max_output_tokens: 1000 })
      await expectRefused(
        lab,
        { path, headers, body },
        { status: 429, type: 'rate_limit_error', code: 'request_exceeds_limit', message: /1000 tokens per minute/ },
      )
    })

    it('cost it nothing where they are counted only', async () => {
      const before = await left()
      const answer = await sendRaw(lab.gateway.url, {
        path: `${RESPONSES_PATH}/input_tokens`,
        headers,
        body: requestText(),
      })
      expect([answer.status, await left()]).toEqual([200, before])
    })
  })

  describe('are refused before an upstream is called', () => {
    it.each([
      ['no model', '{"input":"x"}', 'missing_required_parameter', 'model'],
      ['input of a number', requestText({ input: 7 }), 'invalid_type', 'input'],
      ['an item of a text', requestText({ input: ['x'] }), 'invalid_type', 'input'],
      ['a tool without type', requestText({ tools: [{}] }), 'missing_required_parameter', 'tools[0].type'],
      ['no output', requestText({ max_output_tokens: 0 }), 'integer_below_min_value', 'max_output_tokens'],
      ['a temperature', requestText({ temperature: 3 }), 'decimal_above_max_value', 'temperature'],
      ['a stream of a text', requestText({ stream: 'yes' }), 'invalid_type', 'stream'],
      ['background without store', requestText({ background: true, store: false }), 'invalid_value', 'background'],
      ['a conversation', requestText({ conversation: 'conv_1' }), 'unsupported_value', 'conversation'],
      [
        'an unknown conversation before it',
        requestText({ previous_response_id: 'resp_unknown' }),
        'previous_response_not_found',
        'previous_response_id',
      ],
    ])('%s', async (_what, body, code, param) => {
      await expectRefused(lab, { path: RESPONSES_PATH, body }, { status: 400, code, param })
    })
  })

  it('that failed are charged what their upstream says, and nothing where it says nothing', async () => {
    lab.simulator.queueFault(whole(response({ status: 'failed', output: [], usage: null })))
    const answer = await create(lab)
    const id = String(answer.headers['x-request-id'])
    expect(await recordWhere(lab.gateway, ({ request_id }) => request_id === id)).toMatchObject({
      outcome: 'ok',
      cost: '0',
    })
  })

  it.each(CHANNEL_FAULTS.filter(({ fault }) => fault !== 'hang'))(
    'give no word of a failing channel: $fault',
    async ({ fault, chatStatus, code }) => {
      lab.simulator.queueFault(fault)
      const answer = await create(lab)
      expect([answer.status, errorOf(answer).code]).toEqual([chatStatus, code])
    },
  )

  it('end their upstream call where the caller leaves', async () => {
    lab.simulator.queueFault('hang')
    const start = () => startCall(lab.gateway, { path: RESPONSES_PATH, body: requestText({ stream: true }) })
    expect(await timeAbort(lab.simulator, start)).toBeLessThan(5000)
  })
})
