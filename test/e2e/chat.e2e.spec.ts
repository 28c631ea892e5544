import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { chat, CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, UPSTREAM_KEY, withP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ simulator: { acceptUnknownFields: true } })
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe.each(OPENAI_CLIENTS)('chat completions with %s', (_name, makeClient) => {
  it('answers as the upstream would, with usage and request id', async () => {
    const { data, request_id, response } = await makeClient(lab.gateway)
      .chat.completions.create(chat('Hello'))
      .withResponse()
    expect(data.choices[0]?.message.content).toBe('You said: Hello')
    expect(data.choices[0]?.finish_reason).toBe('stop')
    expect(data.usage?.total_tokens).toBeGreaterThan(0)
    expect(data).toHaveProperty('_request_id', request_id)
    expect(request_id).toMatch(/^req_[0-9a-f]{32}$/)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(lab.simulator.violations).toEqual([])
  })

  it('gives every one of n choices', async () => {
    const data = await makeClient(lab.gateway).chat.completions.create({ ...chat('Hello'), n: 3 })
    expect(data.choices.map(({ index }) => index)).toEqual([0, 1, 2])
  })
})

describe('what travels through a chat completion', () => {
  const STRANGE = [
    '{ "future_field" : {"b":1.0,"a":1e3,"big":12345678901234567890} ,',
    '\t"model":"gpt-4o-mini",\r\n  "temperature":1.0, "top_p":1E-1,',
    '"messages":[{"role":"user","content":"caf\\u00e9 \\ud83d\\ude00 \\/ é","x":[1.50]}],"max_tokens":1e3, "n" :1 }\n',
  ].join('\n')

  it('sends the bytes of the caller to the upstream exactly as they were written', async () => {
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: STRANGE })
    expect(answer.status).toBe(200)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(STRANGE)
  })

  it('replaces only the bytes of the model where a channel maps it', async () => {
    const options = { simulator: { acceptUnknownFields: true }, channel: { modelMap: { 'gpt-4o-mini': 'gpt-4.1"x' } } }
    await withP1Gateway(options, async ({ gateway, simulator }) => {
      await sendRaw(gateway.url, { path: CHAT_PATH, body: STRANGE })
      expect(simulator.lastRequest?.body.toString()).toBe(STRANGE.replace('"gpt-4o-mini"', '"gpt-4.1\\"x"'))
    })
  })

  it("gives the upstream's answer back byte for byte", async () => {
    const body =
      '{\n  "id": "chatcmpl-1",\n  "usage": {"prompt_tokens": 1.0e0},\n  "n": 12345678901234567890, "t":"\\u00e9"\n}\n'
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.text).toBe(body)
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(body)))
  })

  it('gives an answer of several megabytes back byte for byte', async () => {
    const body = JSON.stringify(
      { id: 'x', filler: 'ä'.repeat(2_000_000), usage: { prompt_tokens: 7, total_tokens: 7 } },
      null,
      2,
    )
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.complete).toBe(true)
    expect(answer.body.equals(Buffer.from(body))).toBe(true)
  })

  it('keeps the headers of the caller from the upstream', async () => {
    const headers = {
      cookie: 'session=1',
      'x-stainless-lang': 'js',
      'x-forwarded-for': '10.0.0.1',
      'x-custom': 'canary',
      'openai-organization': 'org-caller',
      'user-agent': 'caller/1',
      'x-api-key': 'caller-key',
    }
    await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers })
    const sent = lab.simulator.lastRequest?.headers ?? {}
    expect(Object.keys(sent).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
    ])
    expect(sent['authorization']).toBe(`Bearer ${UPSTREAM_KEY}`)
  })

  it("keeps the upstream's own headers from the caller and passes on its limits and times", async () => {
    const { headers } = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    for (const hidden of [
      'openai-organization',
      'openai-project',
      'set-cookie',
      'server',
      'cf-ray',
      'strict-transport-security',
    ]) {
      expect(headers).not.toHaveProperty(hidden)
    }
    expect(headers).not.toHaveProperty('x-powered-by')
    expect(headers['x-ratelimit-remaining-requests']).toBe('9999')
    expect(headers['x-ratelimit-reset-tokens']).toBe('2ms')
    expect(headers['openai-processing-ms']).toMatch(/^\d+$/)
    expect(headers['openai-version']).toBe('2020-10-01')
  })
})

describe('the request id', () => {
  const ask = async (id: string | readonly string[]): Promise<string | string[] | undefined> => {
    const headers = { 'x-request-id': id }
    return (await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers })).headers[
      'x-request-id'
    ]
  }

  it.each(['a', 'my-trace/1:2', 'x'.repeat(128)])('of the caller is kept when it is printable: %s', async (id) => {
    expect(await ask(id)).toBe(id)
    expect(await lab.gateway.logLine(id)).toMatchObject({ status: 200, channel: 'first', model: 'gpt-4o-mini' })
  })

  it.each(['x'.repeat(129), 'two words', 'caf\u00e9', '', ['a', 'b']])(
    'of the caller is replaced when it is not: %s',
    async (id) => {
      expect(await ask(id)).toMatch(/^req_[0-9a-f]{32}$/)
    },
  )

  it('never is the one of the upstream', async () => {
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line['upstreamRequestId']).toMatch(/^req_/)
    expect(line['upstreamRequestId']).not.toBe(answer.headers['x-request-id'])
  })
})
