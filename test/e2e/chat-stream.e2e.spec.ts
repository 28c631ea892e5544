import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { chat, CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { chatHelpers, OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { eventsOf, openRaw, sendRaw } from '../support/raw-http.js'

const STREAM = { stream: true } as const
const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8' }

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ simulator: { acceptUnknownFields: true } })
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const sentOptions = (): unknown => (lab.simulator.lastRequest?.json() as Record<string, unknown>)['stream_options']

describe.each(OPENAI_CLIENTS)('streamed chat with %s', (_name, makeClient) => {
  it('delivers every piece in order, without a trace of usage when the caller did not ask', async () => {
    const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=40'), ...STREAM })
    const pieces: string[] = []
    for await (const chunk of stream) {
      expect(chunk).not.toHaveProperty('usage')
      expect(chunk.choices).toHaveLength(1)
      pieces.push(chunk.choices[0]?.delta.content ?? '')
    }
    expect(pieces.join('')).toBe(Array.from({ length: 40 }, (_, index) => `piece${index + 1}`).join(' '))
    expect(sentOptions()).toEqual({ include_usage: true })
  })

  it('reports usage to the caller who asked', async () => {
    const body = { ...chat('Hello'), ...STREAM, stream_options: { include_usage: true } }
    const usages: unknown[] = []
    for await (const chunk of await makeClient(lab.gateway).chat.completions.create(body)) usages.push(chunk.usage)
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true)
    expect(usages.at(-1)).toMatchObject({ prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) })
  })

  it('works with the stream() helper', async () => {
    const stream = chatHelpers(makeClient(lab.gateway)).stream({ ...chat('Hello there'), n: 2 })
    const completion = await stream.finalChatCompletion()
    expect(completion.choices.map(({ message }) => message.content)).toEqual([
      'You said: Hello there',
      'You said: Hello there',
    ])
    expect(completion.choices.map(({ finish_reason }) => finish_reason)).toEqual(['stop', 'stop'])
  })
})

describe('the bytes of a chat stream', () => {
  it('are those of the upstream when the caller asked for usage', async () => {
    const frames = [
      'data: {"choices" : [], "x":1.0,"usage": null}',
      ': comment',
      'data: {"usage":{"total_tokens":1}}',
      'data: [DONE]',
    ]
    const body = frames.join('\n\n') + '\n\n'
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: EVENT_STREAM, body })
    const more = { ...STREAM, stream_options: { include_usage: true } }
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello', more) })
    expect(answer.text).toBe(body)
  })

  it('lose nothing but the usage when the caller did not ask', async () => {
    const text = '{"delta":{"content":"say \\"usage\\":null, \\"usage\\": {}"}}'
    const body =
      `data: {"usage":null,"choices":[${text}]}\n\n` +
      `data: {"choices":[${text}] , "usage" : null,"x":1.50}\n\n` +
      `data: {"choices":[],"usage":{"prompt_tokens":3,"total_tokens":5}}\n\n` +
      `data: [DONE]\n\n`
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: EVENT_STREAM, body })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello', STREAM) })
    expect(answer.text).toBe(`data: {"choices":[${text}]}\n\ndata: {"choices":[${text}] ,"x":1.50}\n\ndata: [DONE]\n\n`)
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line['usage']).toEqual({ units: { prompt_tokens: 3, total_tokens: 5 }, estimated: false })
  })

  it('are usable events from the first to the terminator', async () => {
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello', STREAM) })
    const events = eventsOf(answer.text)
    expect(events.at(-1)).toBe('[DONE]')
    expect(answer.text).not.toContain('usage')
    expect(answer.complete).toBe(true)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-ratelimit-limit-tokens': '600000',
    })
    expect(answer.headers).not.toHaveProperty('set-cookie')
  })

  it.each([
    ['{"include_usage":false}', '{"include_usage":true}'],
    ['null', '{"include_usage":true}'],
    [
      '{ "future":1.0, "big":12345678901234567890 }',
      '{ "future":1.0, "big":12345678901234567890,"include_usage":true }',
    ],
    ['{"include_usage": true, "future":1e3}', '{"include_usage": true, "future":1e3}'],
  ])('ask for usage and leave the other stream options %s as they are', async (given, sent) => {
    const body = (options: string): string =>
      `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":${options}}`
    await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: body(given) })
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body(sent))
  })
})

describe('the first event of a chat stream', () => {
  it('reaches the caller while the upstream is still working', async () => {
    const arrived = lab.simulator.nextRequest()
    const response = await openRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('#stall', STREAM) })
    const [first] = (await response.take(1).toArray()) as Buffer[]
    expect(first?.toString()).toMatch(/^data: \{"id":"chatcmpl-/)
    expect((await arrived).closedAtMs).toBeUndefined()
    response.destroy()
  })
})
