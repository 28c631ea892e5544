import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { newKey } from '../../src/auth/key-table.js'
import { CHANNEL_FAULTS, expectRefused, startCall, timeAbort } from '../support/failing-calls.js'
import { errorOf, type RawAnswer, sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway, withP1Gateway } from '../support/provider-gateways.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { dataDirectory } from '../support/stores.js'
import { recordWhere } from '../support/usage-lab.js'

const PATH = '/v1/responses'
const MODEL = 'gpt-5-mini'
const OTHER_KEY = newKey()
const KEYS = [
  { id: 'test', key: TEST_KEY },
  { id: 'other', key: OTHER_KEY },
]

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
  const base = { id: `resp_${number}`, object: 'response', created_at: 1, status: 'completed', model: MODEL }
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

const requestText = (more: object = {}): string => JSON.stringify({ model: MODEL, input: 'Hello', ...more })
const create = (lab: P1Gateway, more: object = {}, key = TEST_KEY): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { path: PATH, body: requestText(more), headers: { authorization: `Bearer ${key}` } })
const ask = (lab: P1Gateway, method: string, path: string, key = TEST_KEY): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { method, path: `${PATH}/${path}`, headers: { authorization: `Bearer ${key}` } })

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
  shareLab(async () => (lab = await startP1Gateway({ keys: KEYS, sections: { database: {}, prices } })))

  describe('an answer', () => {
    it('comes byte for byte, as the request went, and is recorded with what its upstream says', async () => {
      const text = `{ "id" : "resp_bytes",\n "output":[], "usage":${JSON.stringify(USAGE)}, "n":1.50 }\n`
      lab.simulator.queueFault(answered('application/json', text))
      const body = `{ "input" : "caf\\u00e9",\t"model":"${MODEL}", "later":1e3 }`
      const answer = await sendRaw(lab.gateway.url, { path: PATH, body })
      expect(answer.text).toBe(text)
      expect(lab.simulator.lastRequest?.path).toBe(PATH)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
      const id = String(answer.headers['x-request-id'])
      const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
      const units = { prompt_tokens: 7, cached_tokens: 2, completion_tokens: 5, reasoning_tokens: 3 }
      expect(record).toMatchObject({ route: PATH, model: MODEL, outcome: 'ok', cost: '12', units })
    })

    it('has only the name of its model replaced where a channel maps it', async () => {
      await withP1Gateway({ channel: { modelMap: { [MODEL]: 'other-model' } } }, async (mapped) => {
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
      const first = await client.responses.create({ model: MODEL, input: 'Hello' })
      expect(first.output_text).toContain('Hello')
      const next = await client.responses.create({
        model: MODEL,
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
      const { responses } = makeClient(lab.gateway)
      const { id, output_text } = await responses.create({ model: MODEL, input: 'Hello' })
      expect((await responses.retrieve(id)).output_text).toBe(output_text)
      expect((await responses.inputItems.list(id)).data).toHaveLength(1)
      await responses.delete(id)
      await expect(responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    })

    it('call tools, whose answers go back by id', async () => {
      const { responses } = makeClient(lab.gateway)
      const weather = { type: 'function', name: 'get_weather', parameters: {}, strict: false } as const
      const first = await responses.create({ model: MODEL, input: 'get_weather please', tools: [weather] })
      const call = first.output.find((item) => item.type === 'function_call')
      const output = { type: 'function_call_output', call_id: String(call?.call_id), output: 'sunny' } as const
      const params = { model: MODEL, input: [output], previous_response_id: first.id, tools: [weather] }
      expect((await responses.create(params)).status).toBe('completed')
    })

    it('tell nothing to the stream that breaks in the middle but an error', async () => {
      const params = { model: MODEL, input: '#cut', stream: true } as const
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
      expect(lab.simulator.lastRequest?.path).toBe(`${PATH}/${id}`)
      expect([...(lab.simulator.lastRequest?.query ?? [])]).toEqual([['include[]', 'reasoning.encrypted_content']])
      lab.simulator.queueFault(answered('application/json', '{"object":"list","data":[]}'))
      expect((await ask(lab, 'GET', `${id}/input_items?limit=2&order=asc`)).status).toBe(200)
      expect(lab.simulator.lastRequest?.path).toBe(`${PATH}/${id}/input_items`)
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

    it('is not asked for as a stream', async () => {
      const answer = await ask(lab, 'GET', 'resp_1?stream=true')
      expect([answer.status, errorOf(answer).param]).toEqual([400, 'stream'])
    })

    it.each(['resp_unknown', '..%2fmodels', '%00', 'a'.repeat(200)])('is nothing under the id %s', async (id) => {
      expect((await ask(lab, 'GET', id)).status).toBe(404)
      expect(lab.simulator.requests).toEqual([])
    })

    it('is known after a restart, and on the channel that has it', async () => {
      const directory = await dataDirectory()
      const options = { keys: KEYS, sections: { database: {} }, dataDirectory: directory, withSecond: true }
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
      const answer = await sendRaw(lab.gateway.url, { path: `${PATH}/input_tokens`, body: requestText() })
      expect(answer.text).toBe(text)
      const id = String(answer.headers['x-request-id'])
      expect(await recordWhere(lab.gateway, ({ request_id }) => request_id === id)).toMatchObject({ cost: '0' })
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
      ['background', requestText({ background: true }), 'unsupported_value', 'background'],
      ['a conversation', requestText({ conversation: 'conv_1' }), 'unsupported_value', 'conversation'],
      [
        'an unknown conversation before it',
        requestText({ previous_response_id: 'resp_unknown' }),
        'previous_response_not_found',
        'previous_response_id',
      ],
    ])('%s', async (_what, body, code, param) => {
      await expectRefused(lab, { path: PATH, body }, { status: 400, code, param })
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
    const start = () => startCall(lab.gateway, { path: PATH, body: requestText({ stream: true }) })
    expect(await timeAbort(lab.simulator, start)).toBeLessThan(5000)
  })
})
