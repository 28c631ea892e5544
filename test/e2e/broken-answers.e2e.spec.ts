import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { chat, CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { openai4, openai6 } from '../support/openai-clients.js'
import { type P1Gateway, startP1Gateway } from '../support/p1-gateway.js'
import { errorOf, eventsOf, sendRaw } from '../support/raw-http.js'
import { SHORT_TIMEOUTS } from '../support/upstream-faults.js'

let lab: P1Gateway
/** Waits half a second for an upstream that has fallen silent; only for faults that are nothing but silence. */
let impatient: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
  impatient = await startP1Gateway({ channel: SHORT_TIMEOUTS })
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  await lab.close()
  await impatient.close()
})

const labFor = (fault: FaultName): P1Gateway => (fault === 'stall' ? impatient : lab)

const STYLE = { model: 'gpt-4o-mini-tts', stream_format: 'sse' }
const STREAMS = [
  ['chat', CHAT_PATH, chatText('#chunks=20', { stream: true }), '\n\n'],
  ['speech events', SPEECH_PATH, speechText('Hello, this is a longer sentence.', STYLE), '\r\n\r\n'],
  [
    'speech events the gateway builds',
    SPEECH_PATH,
    speechText('#bytes=2000000', { stream_format: 'sse', response_format: 'pcm' }),
    '\r\n\r\n',
  ],
] as const

describe.each(STREAMS)('a stream of %s', (name, path, body, boundary) => {
  const isBuilt = name.includes('builds')

  it.each([
    ['cut', 'upstream_failed'],
    ['stall', 'upstream_timeout'],
    ['cleancut', 'upstream_failed'],
  ] as const)('that suffers a %s ends in one error frame and without a terminator', async (fault, code) => {
    // Raw audio that ends properly cannot be known to be incomplete.
    if (fault === 'cleancut' && isBuilt) return
    const { gateway, simulator } = labFor(fault)
    simulator.queueFault(fault)
    const answer = await sendRaw(gateway.url, { path, body })
    const events = eventsOf(answer.text)
    expect(answer.status).toBe(200)
    expect(answer.complete).toBe(true)
    expect(events.length).toBeGreaterThan(1)
    expect(errorOf({ text: events.at(-1) ?? '' })).toEqual({
      message: expect.any(String),
      type: 'upstream_error',
      param: null,
      code,
    })
    for (const event of events.slice(0, -1)) expect(JSON.parse(event)).not.toHaveProperty('error')
    expect(answer.text).not.toContain('[DONE]')
    expect(answer.text.endsWith(boundary)).toBe(true)
    const line = await gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ status: 200, failure: { kind: code } })
  })

  it("that ends in the upstream's error frame passes it on and nothing after it", async () => {
    if (isBuilt) return
    lab.simulator.queueFault('errorframe')
    const answer = await sendRaw(lab.gateway.url, { path, body })
    const events = eventsOf(answer.text)
    expect(errorOf({ text: events.at(-1) ?? '' })).toMatchObject({ type: 'server_error', param: null, code: null })
    expect(events).toHaveLength(3)
    expect(answer.text).not.toContain('[DONE]')
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ failure: { kind: 'upstream_failed' } })
  })

  it('that comes slowly comes whole', async () => {
    if (isBuilt) return
    lab.simulator.queueFault('slow')
    const answer = await sendRaw(lab.gateway.url, { path, body })
    expect(eventsOf(answer.text).at(-1)).toBe('[DONE]')
  })
})

describe('a chat stream', () => {
  it('is not finished while one of its choices is not', async () => {
    const chunk = (index: number, reason: string | null): string =>
      `data: ${JSON.stringify({ choices: [{ index, delta: {}, finish_reason: reason }] })}\n\n`
    const body = chunk(0, null) + chunk(1, null) + chunk(0, 'stop')
    const headers = { 'content-type': 'text/event-stream' }
    lab.simulator.queueFault({ kind: 'status', status: 200, headers, body })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello', { stream: true, n: 2 }) })
    expect(errorOf({ text: eventsOf(answer.text).at(-1) ?? '' })).toMatchObject({ code: 'upstream_failed' })
  })

  it.each([
    ['openai 6.49.0', openai6],
    ['openai 4.104.0', openai4],
  ])('that is cut throws in %s', async (_name, makeClient) => {
    lab.simulator.queueFault('cut')
    const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=20'), stream: true })
    const read = async (): Promise<void> => {
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1)
    }
    await expect(read()).rejects.toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
  })
})

describe('a chat completion', () => {
  it.each([
    ['cut', 502, 'upstream_failed', 'false'],
    ['cleancut', 502, 'upstream_failed', undefined],
    ['stall', 504, 'upstream_timeout', 'false'],
    ['errorframe', 502, 'upstream_failed', undefined],
  ] as const)('whose answer suffers a %s is refused with %s %s', async (fault, status, code, shouldRetry) => {
    const { gateway, simulator } = labFor(fault)
    simulator.queueFault(fault)
    const answer = await sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.status).toBe(status)
    expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code })
    expect(answer.headers['x-should-retry']).toBe(shouldRetry)
  })
})

describe('raw audio', () => {
  it.each(['cut', 'stall', 'errorframe'] as const)('that suffers a %s is visibly cut', async (fault) => {
    const { gateway, simulator } = labFor(fault)
    simulator.queueFault(fault)
    const body = speechText('#bytes=2000000', { response_format: 'pcm' })
    const answer = await sendRaw(gateway.url, { path: SPEECH_PATH, body, headers: { 'x-request-id': `raw-${fault}` } })
    expect(answer.status).toBe(200)
    expect(answer.complete).toBe(false)
    expect(answer.body.length).toBeGreaterThan(0)
    const line = await gateway.logLine(`raw-${fault}`)
    expect(line).toMatchObject({ failure: { kind: fault === 'stall' ? 'upstream_timeout' : 'upstream_failed' } })
    expect(line['status']).not.toBe(499)
  })
})
