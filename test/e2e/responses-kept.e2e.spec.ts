import { rm } from 'node:fs/promises'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { eventually } from '../support/eventually.js'
import { errorOf, lastRequest, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askResponse, RESPONSES_PATH, sendResponse } from '../support/responses-lab.js'
import { deleteResponse, openai6, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { dataDirectory, nameDataDirectory, startPostgres, type TestPostgres } from '../support/stores.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  STRICT_KEY,
  type TranslationLab,
} from '../support/translation-gateway.js'

const TRANSLATED_MODELS = [MESSAGES_MODEL, CHAT_ONLY_MODEL]
const TOOL = {
  type: 'function',
  name: 'get_weather',
  description: 'Weather',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
}

/** A picture takes no more tokens for being large. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
function pictureOf(bytes: number): readonly object[] {
  const picture = Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(Math.ceil((bytes * 3) / 4))])
  const image_url = `data:image/png;base64,${picture.toString('base64')}`
  return [{ role: 'user', content: [{ type: 'input_image', image_url, detail: 'auto' }] }]
}

type Json = Readonly<Record<string, unknown>>

async function created(gateway: TestGateway, body: object): Promise<Json & { readonly id: string }> {
  const answer = await sendResponse(gateway, body)
  expect([answer.status, answer.text]).toEqual([200, expect.stringMatching(/"object": ?"response"/)])
  return JSON.parse(answer.text) as Json & { readonly id: string }
}

/** The texts of a conversation as its upstream got it, whatever its dialect. */
function textsAt(simulator: Simulator, name: 'messages' | 'input'): readonly string[] {
  const body = JSON.parse(lastRequest(simulator).body.toString()) as Record<string, readonly Json[]>
  return (body[name] ?? []).map(({ content }) => textIn(content))
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: Json) => String(part['text'] ?? part['type'])).join('') : ''
}

describe('responses of translated models', () => {
  let lab: TranslationLab
  shareLab(async () => {
    const directory = await dataDirectory()
    nameDataDirectory(directory)
    lab = await startTranslationLab({ database: {} })
    return {
      close: async () => {
        await lab.close()
        await rm(directory, { recursive: true, force: true })
      },
    }
  })
  afterEach(() => {
    expect([...lab.p1.violations, ...lab.m1.violations]).toEqual([])
    lab.p1.reset()
    lab.m1.reset()
  })

  const idle = (): void => {
    lab.p1.reset()
    lab.m1.reset()
  }
  const requests = (): number => lab.p1.requests.length + lab.m1.requests.length

  describe.each(TRANSLATED_MODELS)('such as %s', (model) => {
    it('are read as they were answered, and no upstream is asked', async () => {
      const answer = await sendResponse(lab.gateway, { model, input: 'Hello', metadata: { a: 'b' }, tools: [TOOL] })
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
      const { id, store } = JSON.parse(answer.text) as Json
      expect(store).toBe(true)
      idle()
      const read = await askResponse(lab.gateway, 'GET', `${String(id)}?include[]=reasoning.encrypted_content`)
      expect([read.status, read.headers['content-type']]).toEqual([200, 'application/json'])
      expect(JSON.parse(read.text)).toEqual(JSON.parse(answer.text))
      expect(requests()).toBe(0)
    })

    it('are kept when their stream is over, as its last event has them', async () => {
      const answer = await sendResponse(lab.gateway, { model, input: 'Hello', stream: true, store: true })
      const last = answer.text.split('\n').findLast((line) => line.startsWith('data: '))
      const { type, response } = JSON.parse(String(last).slice('data: '.length)) as { type: string; response: Json }
      expect([type, response['store']]).toEqual(['response.completed', true])
      expect(JSON.parse((await askResponse(lab.gateway, 'GET', String(response['id']))).text)).toEqual(response)
    })

    it('are kept when they are incomplete', async () => {
      const { id } = await created(lab.gateway, { model, input: '#words=40 Hello', max_output_tokens: 16 })
      const read = await askResponse(lab.gateway, 'GET', id)
      expect(JSON.parse(read.text)).toMatchObject({ id, status: 'incomplete' })
    })

    it('are not kept with store false', async () => {
      const { id, store } = await created(lab.gateway, { model, input: 'Hello', store: false })
      expect(store).toBe(false)
      expect((await askResponse(lab.gateway, 'GET', id)).status).toBe(404)
      const next = await sendResponse(lab.gateway, { model, input: 'And now?', previous_response_id: id })
      expect([next.status, errorOf(next).code]).toEqual([400, 'previous_response_not_found'])
    })

    it('are not kept where their stream breaks, or the caller gets an error', async () => {
      const cut = await sendResponse(lab.gateway, { model, input: '#cut Hello', stream: true })
      const id = /"id":"(resp_\w+)"/.exec(cut.text)?.[1]
      expect(id).toBeDefined()
      expect((await askResponse(lab.gateway, 'GET', String(id))).status).toBe(404)
    })

    it('are deleted once, with what was asked', async () => {
      const { id } = await created(lab.gateway, { model, input: 'Hello' })
      idle()
      const deleted = await askResponse(lab.gateway, 'DELETE', id)
      expect([deleted.status, JSON.parse(deleted.text)]).toEqual([200, { id, object: 'response', deleted: true }])
      for (const [method, path] of [
        ['GET', id],
        ['GET', `${id}/input_items`],
        ['DELETE', id],
      ] as const) {
        const answer = await askResponse(lab.gateway, method, path)
        expect([answer.status, errorOf(answer).message]).toEqual([404, `Response with id '${id}' not found.`])
      }
      const next = await sendResponse(lab.gateway, { model, input: 'And now?', previous_response_id: id })
      expect([next.status, errorOf(next).code]).toEqual([400, 'previous_response_not_found'])
      expect(requests()).toBe(0)
    })

    it('are not there for another key', async () => {
      const { id, output } = await created(lab.gateway, { model, input: 'Hello' })
      const [item] = output as readonly Json[]
      idle()
      for (const [method, path] of [
        ['GET', id],
        ['GET', `${id}/input_items`],
        ['DELETE', id],
      ] as const) {
        const answer = await askResponse(lab.gateway, method, path, STRICT_KEY)
        expect([answer.status, errorOf(answer).message]).toEqual([404, `Response with id '${id}' not found.`])
      }
      const next = await sendResponse(lab.gateway, { model, input: 'And now?', previous_response_id: id }, STRICT_KEY)
      expect([next.status, errorOf(next)]).toMatchObject([
        400,
        { code: 'previous_response_not_found', param: 'previous_response_id' },
      ])
      const input = [{ type: 'item_reference', id: item?.['id'] }]
      expect((await sendResponse(lab.gateway, { model, input }, STRICT_KEY)).status).toBe(404)
      expect(requests()).toBe(0)
      expect((await askResponse(lab.gateway, 'GET', id)).status).toBe(200)
    })

    it('are not made in the background, and so are neither cancelled nor streamed later', async () => {
      const refused = await sendResponse(lab.gateway, { model, input: 'Hello', background: true })
      expect([refused.status, errorOf(refused)]).toMatchObject([
        400,
        { code: 'unsupported_value', param: 'background' },
      ])
      expect(requests()).toBe(0)
      const { id } = await created(lab.gateway, { model, input: 'Hello' })
      const cancelled = await askResponse(lab.gateway, 'POST', `${id}/cancel`)
      expect([cancelled.status, errorOf(cancelled).message]).toEqual([400, 'Cannot cancel a synchronous response.'])
      const streamed = await askResponse(lab.gateway, 'GET', `${id}?stream=true`)
      expect([streamed.status, errorOf(streamed).param]).toEqual([400, 'stream'])
      for (const [method, path] of [
        ['POST', `${id}/cancel`],
        ['GET', `${id}?stream=true`],
      ] as const)
        expect((await askResponse(lab.gateway, method, path, STRICT_KEY)).status).toBe(404)
    })

    it('list their input with ids and in parts', async () => {
      const input = [
        { role: 'developer', content: 'Be short.' },
        { type: 'message', role: 'user', id: 'msg_own', content: [{ type: 'input_text', text: 'Hello' }] },
      ]
      const { id } = await created(lab.gateway, { model, input })
      const list = JSON.parse((await askResponse(lab.gateway, 'GET', `${id}/input_items`)).text) as Json
      const [own, made] = list['data'] as readonly Json[]
      expect(list).toMatchObject({ object: 'list', first_id: 'msg_own', last_id: made?.['id'], has_more: false })
      expect(own).toEqual({ ...input[1], status: 'completed' })
      expect(made).toEqual({
        id: expect.stringMatching(/^msg_[0-9a-f]{52}$/),
        type: 'message',
        status: 'completed',
        role: 'developer',
        content: [{ type: 'input_text', text: 'Be short.' }],
      })
    })

    it('are gone on with, and the answer says so', async () => {
      const first = await created(lab.gateway, { model, input: 'First', instructions: 'Only of the first.' })
      const more = { previous_response_id: first.id, input: 'Second' }
      expect(await created(lab.gateway, { model, ...more })).toMatchObject({
        previous_response_id: first.id,
        instructions: null,
      })
      const { text } = await sendResponse(lab.gateway, { model, ...more, stream: true })
      expect(text.split(`"previous_response_id":"${first.id}"`)).toHaveLength(4)
      const simulator = model === MESSAGES_MODEL ? lab.m1 : lab.p1
      expect(textsAt(simulator, 'messages')).toEqual(['First', expect.stringContaining('First'), 'Second'])
      expect(lastRequest(simulator).body.toString()).not.toContain('Only of the first.')
    })

    it('are gone on with by references to single items', async () => {
      const first = await created(lab.gateway, { model, input: 'First' })
      const list = JSON.parse((await askResponse(lab.gateway, 'GET', `${first.id}/input_items`)).text) as Json
      const [answer] = first['output'] as readonly Json[]
      const input = [
        { type: 'item_reference', id: list['first_id'] },
        { id: answer?.['id'] },
        { role: 'user', content: 'Second' },
      ]
      const second = await created(lab.gateway, { model, input })
      const simulator = model === MESSAGES_MODEL ? lab.m1 : lab.p1
      expect(textsAt(simulator, 'messages')).toEqual(['First', expect.stringContaining('First'), 'Second'])
      await askResponse(lab.gateway, 'DELETE', first.id)
      await created(lab.gateway, { model, input: 'Third', previous_response_id: second.id, store: false })
      expect(textsAt(simulator, 'messages')).toHaveLength(5)
      // They stand in the second as well.
      await askResponse(lab.gateway, 'DELETE', second.id)
      expect((await sendResponse(lab.gateway, { model, input })).status).toBe(404)
    })

    it('name what is wrong in the caller’s own words', async () => {
      const first = await created(lab.gateway, { model, input: 'First' })
      const input = [
        { role: 'user', content: 'Second' },
        { type: 'local_shell_call', id: 'lsh_1' },
      ]
      const refused = await sendResponse(lab.gateway, { model, input, previous_response_id: first.id })
      expect([refused.status, errorOf(refused).param]).toEqual([400, 'input[1].type'])
    })

    it('have their tokens counted with all that was said before', async () => {
      const count = async (more: object): Promise<number> => {
        const answer = await sendResponse(lab.gateway, { model, ...more }, TEST_KEY, `${RESPONSES_PATH}/input_tokens`)
        return (JSON.parse(answer.text) as { input_tokens: number }).input_tokens
      }
      const first = await created(lab.gateway, { model, input: 'word '.repeat(300) })
      const alone = await count({ input: 'Second' })
      expect(await count({ input: 'Second', previous_response_id: first.id })).toBeGreaterThan(alone + 250)
    })
  })

  it('are one conversation over both upstreams, and go on natively', async () => {
    const first = await created(lab.gateway, { model: MESSAGES_MODEL, input: 'First' })
    const second = await created(lab.gateway, {
      model: CHAT_ONLY_MODEL,
      input: 'Second',
      previous_response_id: first.id,
    })
    const said = ['First', expect.stringContaining('First'), 'Second']
    expect(textsAt(lab.p1, 'messages')).toEqual(said)
    const third = await created(lab.gateway, {
      model: MESSAGES_MODEL,
      input: [{ role: 'user', content: 'Third' }],
      previous_response_id: second.id,
    })
    expect(textsAt(lab.m1, 'messages')).toEqual([...said, expect.stringContaining('Second'), 'Third'])
    const native = await created(lab.gateway, { model: CHAT_MODEL, input: 'Fourth', previous_response_id: third.id })
    expect(textsAt(lab.p1, 'input')).toEqual([
      ...said,
      expect.stringContaining('Second'),
      'Third',
      expect.stringContaining('Third'),
      'Fourth',
    ])
    expect(lastRequest(lab.p1).body.toString()).not.toMatch(/"id":|previous_response_id/)
    // From here on its upstream keeps it.
    const fifth = { model: CHAT_MODEL, input: 'Fifth', previous_response_id: native.id }
    await created(lab.gateway, fifth)
    expect(JSON.parse(lastRequest(lab.p1).body.toString())).toEqual(fifth)
  })

  it('carry calls of tools, and numbers as they are spelled', async () => {
    const [first, second] = [MESSAGES_MODEL, CHAT_ONLY_MODEL] as const
    const called = await created(lab.gateway, {
      model: first,
      input: 'Weather?',
      tools: [TOOL],
      tool_choice: 'required',
    })
    const call = (called['output'] as readonly Json[]).find(({ type }) => type === 'function_call')
    const output = { type: 'function_call_output', call_id: call?.['call_id'], output: '{"t":1.0}' }
    const body = { model: second, input: [output], tools: [TOOL], previous_response_id: called.id }
    const answered = await created(lab.gateway, body)
    const sent = JSON.parse(lastRequest(lab.p1).body.toString()) as { messages: readonly Json[] }
    expect(sent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(sent.messages[2]).toMatchObject({ content: '{"t":1.0}' })
    await created(lab.gateway, { model: CHAT_MODEL, input: 'And?', previous_response_id: answered.id, tools: [TOOL] })
    expect(lastRequest(lab.p1).body.toString()).toContain('"output":"{\\"t\\":1.0}"')
  })

  it('give a model its own thoughts back, and those to no other', async () => {
    const thinking = { reasoning: { effort: 'high', summary: 'auto' }, tools: [TOOL] }
    const asked = { model: MESSAGES_MODEL, input: 'What is the weather in Paris? #tool', ...thinking }
    const called = await created(lab.gateway, asked)
    const output = called['output'] as readonly Json[]
    const call = output.find(({ type }) => type === 'function_call')
    expect(output.map(({ type }) => type)).toEqual(expect.arrayContaining(['reasoning', 'function_call']))
    const result = { type: 'function_call_output', call_id: call?.['call_id'], output: 'Sunny' }
    const more = { input: [result], previous_response_id: called.id }
    await created(lab.gateway, { model: MESSAGES_MODEL, ...thinking, ...more })
    const sent = JSON.parse(lastRequest(lab.m1).body.toString()) as {
      messages: readonly { content: readonly Json[] }[]
    }
    expect(sent.messages[1]?.content[0]).toMatchObject({ type: 'thinking', signature: expect.any(String) })
    await created(lab.gateway, { model: CHAT_ONLY_MODEL, tools: [TOOL], ...more })
    await created(lab.gateway, { model: CHAT_MODEL, tools: [TOOL], ...more })
    const types = (JSON.parse(lastRequest(lab.p1).body.toString()) as { input: readonly Json[] }).input
    expect(types.map(({ type }) => type)).not.toContain('reasoning')
  })

  it('are not mixed with what an upstream keeps', async () => {
    const native = await created(lab.gateway, { model: CHAT_MODEL, input: 'Hello' })
    const [item] = native['output'] as readonly Json[]
    const own = await created(lab.gateway, { model: MESSAGES_MODEL, input: 'Hello' })
    const answer = await sendResponse(lab.gateway, {
      model: CHAT_MODEL,
      input: [{ type: 'item_reference', id: item?.['id'] }],
      previous_response_id: own.id,
    })
    expect([answer.status, errorOf(answer)]).toMatchObject([400, { param: 'input', code: 'unsupported_value' }])
  })

  it('end with the one that is deleted', async () => {
    const first = await created(lab.gateway, { model: MESSAGES_MODEL, input: 'First' })
    const second = await created(lab.gateway, {
      model: MESSAGES_MODEL,
      input: 'Second',
      previous_response_id: first.id,
    })
    await askResponse(lab.gateway, 'DELETE', first.id)
    expect((await askResponse(lab.gateway, 'GET', second.id)).status).toBe(200)
    const next = await sendResponse(lab.gateway, {
      model: MESSAGES_MODEL,
      input: 'Third',
      previous_response_id: second.id,
    })
    expect([next.status, errorOf(next).message]).toEqual([400, `Previous response with id '${first.id}' not found.`])
  })

  it('are answered, and not kept, where they are too large', async () => {
    const input = pictureOf(8 * 1024 * 1024)
    const answer = await sendResponse(lab.gateway, { model: CHAT_ONLY_MODEL, input })
    expect(answer.status).toBe(200)
    const { id } = JSON.parse(answer.text) as { id: string }
    expect((await askResponse(lab.gateway, 'GET', id)).status).toBe(404)
    expect(lab.gateway.logText()).toContain('a response was too large to be kept')
  })

  it('are not gone on with beyond 10 MiB', async () => {
    const input = pictureOf(6 * 1024 * 1024)
    const first = await created(lab.gateway, { model: CHAT_ONLY_MODEL, input })
    idle()
    const next = await sendResponse(lab.gateway, { model: CHAT_ONLY_MODEL, input, previous_response_id: first.id })
    expect([next.status, errorOf(next)]).toMatchObject([
      400,
      { code: 'conversation_too_large', param: 'previous_response_id' },
    ])
    expect(requests()).toBe(0)
  })

  it.each([
    ['limit=0', 400, 'limit'],
    ['limit=101', 400, 'limit'],
    ['limit=x', 400, 'limit'],
    ['order=up', 400, 'order'],
    ['after=msg_unknown', 404, 'after'],
  ])('refuse to list their input with %s', async (query, status, param) => {
    const { id } = await created(lab.gateway, { model: MESSAGES_MODEL, input: 'Hello' })
    const answer = await askResponse(lab.gateway, 'GET', `${id}/input_items?${query}`)
    expect([answer.status, errorOf(answer).param]).toEqual([status, param])
  })

  describe.each(OPENAI_CLIENTS)('with %s', (_name, makeClient) => {
    it('are gone on with, read, listed in pages and deleted', async () => {
      const client = makeClient(lab.gateway)
      const { responses } = client
      const items = ['one', 'two', 'three'].map((content) => ({ role: 'user' as const, content }))
      const first = await responses.create({ model: MESSAGES_MODEL, input: items })
      expect((await responses.retrieve(first.id)).output).toEqual(first.output)
      const texts: string[] = []
      for await (const item of responses.inputItems.list(first.id, { order: 'asc', limit: 2 }))
        texts.push('content' in item ? textIn(item.content) : '')
      expect(texts).toEqual(['one', 'two', 'three'])
      const next = await responses.create({
        model: CHAT_ONLY_MODEL,
        input: 'And now?',
        previous_response_id: first.id,
        stream: true,
      })
      let last: string | undefined
      for await (const event of next) if (event.type === 'response.completed') last = event.response.id
      expect((await responses.retrieve(String(last))).previous_response_id).toBe(first.id)
      await deleteResponse(client, first.id)
      await expect(responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
    })
  })
})

describe('A gateway that keeps no responses', () => {
  it('says so, and knows none', async () => {
    const lab = await startTranslationLab({ dialects: { translate: 'on', keepResponses: false } })
    try {
      const answer = await sendResponse(lab.gateway, { model: MESSAGES_MODEL, input: 'Hello', store: true })
      const response = JSON.parse(answer.text) as Json
      expect([answer.status, response['store'], answer.headers['x-gateway-dropped']]).toEqual([200, false, 'store'])
      expect((await askResponse(lab.gateway, 'GET', String(response['id']))).status).toBe(404)
      const next = { model: MESSAGES_MODEL, input: 'Go on', previous_response_id: response['id'] }
      expect((await sendResponse(lab.gateway, next)).status).toBe(400)
    } finally {
      await lab.close()
    }
  })
})

describe('responses of translated models in PostgreSQL', () => {
  let postgres: TestPostgres
  let here: TranslationLab
  let there: TranslationLab
  shareLab(async () => {
    postgres = await startPostgres()
    const database = { url: await postgres.emptyDatabase() }
    here = await startTranslationLab({ database })
    there = await startTranslationLab({ database })
    return {
      close: async () => {
        await here.close()
        await there.close()
        await postgres.close()
      },
    }
  })

  it('are gone on with at another replica', async () => {
    const first = await openai6(here.gateway).responses.create({ model: MESSAGES_MODEL, input: 'First' })
    const client = openai6(there.gateway)
    expect(await client.responses.retrieve(first.id)).toEqual(first)
    await client.responses.create({ model: CHAT_ONLY_MODEL, input: 'Second', previous_response_id: first.id })
    expect(textsAt(there.p1, 'messages')).toHaveLength(3)
    await deleteResponse(client, first.id)
    expect((await askResponse(here.gateway, 'GET', first.id)).status).toBe(404)
  })

  it('reach their callers without a store, and cannot be read then', async () => {
    const before = await created(here.gateway, { model: MESSAGES_MODEL, input: 'Before' })
    await postgres.kill()
    for (const stream of [false, true]) {
      const answer = await sendResponse(here.gateway, { model: MESSAGES_MODEL, input: 'Hello', stream })
      expect([answer.status, answer.complete]).toEqual([200, true])
      expect(answer.text).toContain('"status":"completed"')
    }
    expect(here.gateway.logText()).toContain('a response could not be kept')
    expect((await askResponse(here.gateway, 'GET', before.id)).status).toBe(503)
    await postgres.start()
    await eventually(async () => (await askResponse(here.gateway, 'GET', before.id)).status === 200)
  })
})
