import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { SpeechCreateParams } from 'openai/resources/audio/speech'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, UPSTREAM_KEY, type P1Gateway } from '../support/p1-gateway.js'
import { eventsOf, openRaw, sendRaw, type RawAnswer } from '../support/raw-http.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const speak = (body: string): Promise<RawAnswer> => sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })

/** What the upstream itself answers to these bytes; its speech is the same each time. */
const speakUpstream = (body: string): Promise<RawAnswer> =>
  sendRaw(lab.simulator.url, { path: SPEECH_PATH, body, headers: { authorization: `Bearer ${UPSTREAM_KEY}` } })

const STYLE = { model: 'gpt-4o-mini-tts', stream_format: 'sse' }

const FORMATS: readonly (readonly [NonNullable<SpeechCreateParams['response_format']>, string])[] = [
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['opus', 'audio/opus'],
  ['pcm', 'audio/pcm'],
]

describe.each(OPENAI_CLIENTS)('speech with %s', (_name, makeClient) => {
  it.each(FORMATS)('in %s has the type %s and the bytes of the upstream', async (format, type) => {
    const params = { model: 'tts-1', input: 'Hello there', voice: 'alloy', response_format: format } as const
    const response = await makeClient(lab.gateway).audio.speech.create(params)
    expect(response.headers.get('content-type')).toBe(type)
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.length).toBeGreaterThan(100)
    expect(bytes.equals((await speakUpstream(JSON.stringify(params))).body)).toBe(true)
    expect(lab.simulator.violations).toEqual([])
  })

  it('is mp3 when no format is asked for', async () => {
    const response = await makeClient(lab.gateway).audio.speech.create({
      model: 'tts-1',
      input: 'Hello',
      voice: 'alloy',
    })
    expect(response.headers.get('content-type')).toBe('audio/mpeg')
    await response.arrayBuffer()
  })
})

describe('what of a speech request reaches the upstream', () => {
  const sentAfter = async (body: string): Promise<string | undefined> => {
    expect((await speak(body)).status).toBe(200)
    return lab.simulator.lastRequest?.body.toString()
  }

  it('is what the caller wrote, byte for byte', async () => {
    const body =
      '{ "speed":1.50,\n"input":"caf\\u00e9 \\ud83d\\ude00", "voice" : {"id":"voice_1"},"model":"gpt-4o-mini-tts" }\n'
    expect(await sentAfter(body)).toBe(body)
  })

  it('never is the metadata, which is this product\u2019s own', async () => {
    const plain = '{"model":"tts-1","input":"Hi","voice":"alloy"}'
    expect(await sentAfter('{"metadata":{"audio":{"a":1}},"model":"tts-1","input":"Hi","voice":"alloy"}')).toBe(plain)
    expect(await sentAfter('{"model":"tts-1","input":"Hi","voice":"alloy","metadata":null}')).toBe(plain)
  })

  it('holds instructions for the style-capable class only', async () => {
    const instructions = ',"instructions":"whisper"'
    const body = (model: string, more: string): string => `{"model":"${model}"${more},"input":"Hi","voice":"alloy"}`
    for (const model of ['tts-1', 'tts-1-hd']) expect(await sentAfter(body(model, instructions))).toBe(body(model, ''))
    for (const model of ['gpt-4o-mini-tts', 'gpt-4o-mini-tts-2025-12-15']) {
      expect(await sentAfter(body(model, instructions))).toBe(body(model, instructions))
    }
  })
})

describe('speech as events', () => {
  it('is byte for byte what the upstream sends for the style-capable class', async () => {
    const body = speechText('Hello there', STYLE)
    const answer = await speak(body)
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(answer.body.equals((await speakUpstream(body)).body)).toBe(true)
    expect(answer.text.endsWith('data: [DONE]\r\n\r\n')).toBe(true)
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line['usage']).toMatchObject({ units: { input_tokens: 3 }, estimated: false })
  })

  it('is built by the gateway for models whose upstream sends raw audio, each piece decodable alone', async () => {
    const raw = { model: 'tts-1', response_format: 'wav' }
    const answer = await speak(speechText('Hello there', { ...raw, stream_format: 'sse' }))
    const events = eventsOf(answer.text)
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(answer.text).not.toMatch(/[^\r]\n/)
    expect(events.at(-1)).toBe('[DONE]')
    const parsed = events
      .slice(0, -1)
      .map((event) => JSON.parse(event) as { type: string; audio?: string; usage?: unknown })
    expect(parsed.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { input_tokens: 3, estimated: true } })
    expect(parsed.slice(0, -1).every(({ type }) => type === 'speech.audio.delta')).toBe(true)
    const audio = Buffer.concat(parsed.map((event) => Buffer.from(event.audio ?? '', 'base64')))
    expect(audio.equals((await speakUpstream(speechText('Hello there', raw))).body)).toBe(true)
  })

  it('gets its terminator even when the upstream forgets it', async () => {
    const frames =
      'data: {"type":"speech.audio.delta","audio":"AAAA"}\r\n\r\ndata: {"type":"speech.audio.done","usage":{}}\r\n\r\n'
    lab.simulator.queueFault({
      kind: 'status',
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: frames,
    })
    expect((await speak(speechText('Hello', STYLE))).text).toBe(`${frames}data: [DONE]\r\n\r\n`)
  })

  it('is refused when the upstream sends audio without a byte in it', async () => {
    for (const stream_format of ['sse', 'audio']) {
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'audio/mpeg' }, body: '' })
      const answer = await speak(speechText('Hello', { stream_format }))
      expect(answer.status).toBe(500)
      expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).not.toHaveProperty('usage')
    }
  })
})

describe('the first byte of a speech', () => {
  it.each([
    ['as raw audio', speechText('#bytes=2000000', { response_format: 'pcm' })],
    ['as events of the upstream', speechText('Hello, this is a sentence.', STYLE)],
    ['as events of the gateway', speechText('#bytes=2000000', { response_format: 'pcm', stream_format: 'sse' })],
  ])('%s reaches the caller while the upstream is still speaking', async (_name, body) => {
    lab.simulator.queueFault('stall')
    const arrived = lab.simulator.nextRequest()
    const response = await openRaw(lab.gateway.url, { path: SPEECH_PATH, body })
    const [first] = (await response.take(1).toArray()) as Buffer[]
    expect(first?.length).toBeGreaterThan(0)
    expect((await arrived).closedAtMs).toBeUndefined()
    response.destroy()
  })
})
