import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { COUNT_TOKENS, MESSAGES, messageText, startM1Gateway, type M1Gateway } from '../support/m1-gateway.js'
import { lastRequest } from '../support/last-request.js'
import { sendRaw, type RawAnswer, type RawRequest } from '../support/raw-http.js'

let lab: M1Gateway

beforeAll(async () => {
  lab = await startM1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const send = (body: string, more: Partial<RawRequest> = {}): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { path: MESSAGES, body, ...more })

describe('a request', () => {
  it('reaches the upstream byte for byte', async () => {
    const body =
      '{ "stream" :false,"max_tokens":1e2 , "metadata":{"user_id":"12345678901234567890"},\n' +
      '"messages":[{"content":[{"type":"text","text":"h\\u00e9 \\ud83d\\ude00 é","cache_control":{"type":"ephemeral"}}],"role":"user"}],' +
      '"temperature":1.0,"model":"claude-sonnet-4-6","top_k":40,"service_tier":"auto","speed":{"x":1.50,"n":12345678901234567890} }'
    const answer = await send(body)
    expect(answer.status).toBe(200)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })

  it('keeps unknown fields and blocks, for the upstream to judge', async () => {
    const body = messageText('Hello', { brand_new_field: [{ a: 1 }] })
    const answer = await send(body)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { message: 'brand_new_field: Extra inputs are not permitted' },
    })
  })

  it('changes nothing but the name the channel gives the model', async () => {
    const mapped = await startM1Gateway({ channel: { modelMap: { 'claude-sonnet-4-6': 'claude-mapped' } } })
    try {
      const body = '{"max_tokens":10, "model" : "claude-sonnet-4-6","messages":[{"role":"user","content":"model"}]}'
      await sendRaw(mapped.gateway.url, { path: MESSAGES, body })
      expect(mapped.simulator.lastRequest?.body.toString()).toBe(body.replace('claude-sonnet-4-6', 'claude-mapped'))
    } finally {
      await mapped.close()
    }
  })

  it('without a version gets 2023-06-01', async () => {
    await send(messageText('Hello'))
    expect(lab.simulator.lastRequest?.headers['anthropic-version']).toBe('2023-06-01')
    expect(lab.simulator.lastRequest?.headers).not.toHaveProperty('anthropic-beta')
    expect(lab.simulator.lastRequest?.query.toString()).toBe('')
  })

  it.each(['2023-06-01', '2026-10-21', '2099-01-01'])('of version %s has it relayed', async (version) => {
    await send(messageText('Hello'), { headers: { 'anthropic-version': version } })
    expect(lab.simulator.lastRequest?.headers['anthropic-version']).toBe(version)
  })

  it('relays beta features of token counting and drops every other query', async () => {
    const body = '{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"Hi"}]}'
    await send(body, { path: `${COUNT_TOKENS}?beta=true&api_key=canary`, headers: { 'anthropic-beta': 'a-1,b-2' } })
    const { query, headers, path } = lastRequest(lab.simulator)
    expect([path, query.toString(), headers['anthropic-beta']]).toEqual([COUNT_TOKENS, 'beta=true', 'a-1,b-2'])
  })
})

describe('an answer', () => {
  it('has the bytes of the upstream, padding and all', async () => {
    const body =
      '{"id":"msg_1", "type":"message","usage":{"input_tokens":1,"output_tokens":12345678901234567890},"x":1.0}  \n'
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
    expect((await send(messageText('Hello'))).text).toBe(body)
  })

  it('streams the very frames of the upstream, with blanks before the brace and without [DONE]', async () => {
    const { text, headers } = await send(messageText('#chunks=30', { stream: true }))
    expect(text).toContain('  }\n\nevent: ')
    expect(text).toMatch(/^event: message_start\ndata: \{/)
    expect(text.match(/^event: content_block_delta$/gm)).toHaveLength(30)
    expect(text).toContain('event: ping\ndata: {"type": "ping"}\n\n')
    expect(text).toMatch(/event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/)
    expect(text).not.toContain('[DONE]')
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8')
  })

  it('passes frames it does not know, and comments, untouched', async () => {
    const body = [
      'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n',
      ': a comment\n\n',
      'event: brand_new\ndata: {"type":"brand_new"   ,"n":1.0}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ].join('')
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body })
    const answer = await send(messageText('Hello', { stream: true }))
    expect(answer.text).toBe(body)
    expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).toMatchObject({
      usage: { units: { input_tokens: 3, output_tokens: 7 }, estimated: false },
    })
  })

  it.each([MESSAGES, COUNT_TOKENS])('of %s tells nothing of the account, and carries our request id', async (path) => {
    const body =
      path === MESSAGES
        ? messageText('Hello')
        : '{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"Hi"}]}'
    const { headers } = await send(body, { path })
    expect(JSON.stringify(headers)).not.toMatch(/organization|simulated|cloudflare|google|set-cookie|req_011/)
    expect(headers['request-id']).toBe(headers['x-request-id'])
    expect(headers['anthropic-ratelimit-tokens-limit']).toBe('480000')
  })

  it('keeps the request id the caller chose', async () => {
    const { headers } = await send(messageText('Hello'), { headers: { 'x-request-id': 'mine-1' } })
    expect([headers['request-id'], headers['x-request-id']]).toEqual(['mine-1', 'mine-1'])
  })

  it('has its usage logged as the upstream reports it, streamed or not', async () => {
    for (const stream of [false, true]) {
      const { headers } = await send(messageText('Hello you', { stream }))
      const line = await lab.gateway.logLine(String(headers['x-request-id']))
      expect(line).toMatchObject({
        model: 'claude-sonnet-4-6',
        channel: 'first',
        usage: { units: { output_tokens: 4 }, estimated: false },
      })
    }
  })
})
