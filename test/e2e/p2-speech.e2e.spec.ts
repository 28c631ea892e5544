import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { JsonObject } from '@multi-model-gateway/sandbox/server/json-value.js'
import { AUDIO_FORMATS } from '../../src/dialects/audio-formats.js'
import { decode } from '../support/audio-decoders.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { P2_APP_ID, P2_MODEL, type P2Gateway, p2Text, startP2Gateway, withP2Gateway } from '../support/p2-gateway.js'
import { errorOf, eventsOf, openRaw, type RawAnswer, sendRaw } from '../support/raw-http.js'

let lab: P2Gateway

beforeAll(async () => {
  lab = await startP2Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const speak = (input: string, more: object = {}): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { path: SPEECH_PATH, body: p2Text(input, more) })

/** The requests the upstream has received, as JSON. */
const requests = (): Readonly<Record<string, JsonObject>>[] =>
  lab.simulator.sessions.flatMap(({ decoded }) => decoded as Readonly<Record<string, JsonObject>>[])

/** The audio in the events of an answer. */
const audioOf = (answer: RawAnswer): Buffer =>
  Buffer.concat(
    eventsOf(answer.text)
      .filter((event) => event.includes('speech.audio.delta'))
      .map((event) => Buffer.from((JSON.parse(event) as { audio: string }).audio, 'base64')),
  )

/** Asked for, asked of the upstream, and what the bytes are. */
const FORMATS = [
  ['mp3', 'mp3', 'audio/mpeg', undefined],
  ['opus', 'ogg_opus', 'audio/opus', undefined],
  ['aac', 'mp3', 'audio/mpeg', 'mp3'],
  ['flac', 'mp3', 'audio/mpeg', 'mp3'],
  ['wav', 'pcm', 'audio/wav', undefined],
  ['pcm', 'pcm', 'audio/pcm', undefined],
] as const

describe('speech at P2', () => {
  it('knows every format', () => {
    expect(FORMATS.map(([format]) => format).sort()).toEqual(Object.keys(AUDIO_FORMATS).sort())
  })

  it.each(FORMATS)('in %s is asked for as %s and sent as %s', async (format, encoding, type, fallback) => {
    const answer = await speak('Hello there, this is a sentence.', { response_format: format })
    expect(answer).toMatchObject({ status: 200, complete: true })
    expect(answer.headers['content-type']).toBe(type)
    expect(answer.headers['x-gateway-audio-fallback']).toBe(fallback)
    const { seconds, channels, sampleRateHz } = await decode(type, answer.body)
    expect(seconds).toBeGreaterThan(0.5)
    expect([channels, sampleRateHz]).toEqual([1, type === 'audio/opus' ? 48_000 : 24_000])
    expect(requests()).toMatchObject([{ audio: { encoding, rate: 24_000 } }])
    expect(lab.simulator.violations).toEqual([])
  })

  it.each(FORMATS)('in %s as events carries the same audio', async (format, _encoding, _type, fallback) => {
    const raw = await speak('Hello there, this is a sentence.', { response_format: format })
    const events = await speak('Hello there, this is a sentence.', { response_format: format, stream_format: 'sse' })
    expect(events.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(events.headers['x-gateway-audio-fallback']).toBe(fallback)
    // A stream of Ogg has a serial number of its own.
    if (format === 'opus') expect(audioOf(events)).toHaveLength(raw.body.length)
    else expect(audioOf(events).equals(raw.body)).toBe(true)
    const [done, terminator] = eventsOf(events.text).slice(-2)
    const usage = { input_characters: 32, estimated: true }
    expect(JSON.parse(done ?? '')).toMatchObject({ type: 'speech.audio.done', usage })
    expect(terminator).toBe('[DONE]')
  })

  it.each(OPENAI_CLIENTS)('is understood by %s', async (_name, makeClient) => {
    const response = await makeClient(lab.gateway).audio.speech.create({
      model: P2_MODEL,
      input: 'Hello',
      voice: 'nova',
    })
    expect(response.headers.get('content-type')).toBe('audio/mpeg')
    await decode('audio/mpeg', Buffer.from(await response.arrayBuffer()))
  })

  it('sends the pair in its two places and asks once on each connection, which it then closes', async () => {
    await speak('Hello there.')
    await lab.simulator.idle()
    expect(requests()).toMatchObject([
      { app: { appid: P2_APP_ID, cluster: 'volcano_tts' }, request: { model: P2_MODEL } },
    ])
    expect(lab.simulator.lastSession).toMatchObject({ receivedMessages: 1, end: { outcome: 'finished', code: 1000 } })
    expect(lab.simulator.openConnections).toBe(0)
  })

  it('reaches the caller while the upstream is still speaking', async () => {
    await withP2Gateway({ simulator: { gapMs: 60_000 } }, async ({ gateway, simulator }) => {
      simulator.queueFault('#slow')
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body: p2Text('Hello, this is a sentence.') })
      const [first] = (await response.take(1).toArray()) as Buffer[]
      expect(first?.length).toBeGreaterThan(0)
      expect(simulator.lastSession?.end).toBeUndefined()
      response.destroy()
    })
  })

  it('is logged with the trace id of the upstream and the characters spoken', async () => {
    const answer = await speak('Hello 😀')
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({
      channel: 'first',
      status: 200,
      upstreamStatus: 101,
      upstreamRequestId: lab.simulator.lastSession?.answerHeaders['x-tt-logid'],
      usage: { units: { input_characters: 7 }, estimated: true },
    })
    expect(line['firstByteMs']).toBeGreaterThan(0)
    expect(line['upstreamMs']).toBeGreaterThan(0)
  })
})

describe('a long text', () => {
  const sentences = Array.from({ length: 48 }, (_, index) => `这是第${index}句话，今天天气很好，我们去公园散步。`)
  const text = sentences.join('')

  it.each([
    ['mp3', 'audio/mpeg'],
    ['opus', 'audio/opus'],
    ['wav', 'audio/wav'],
    ['pcm', 'audio/pcm'],
  ])('is spoken in pieces and is one file in %s', async (format, type) => {
    const answer = await speak(text, { response_format: format })
    expect(answer).toMatchObject({ status: 200, complete: true })
    const pieces = requests().map(({ request }) => String(request?.['text']))
    expect(pieces.length).toBeGreaterThan(3)
    expect(pieces.join('')).toBe(text)
    for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(1024)
    for (const piece of pieces) expect(piece).toMatch(/。$/)
    expect(new Set(requests().map(({ request }) => request?.['reqid'])).size).toBe(pieces.length)
    const whole = await decode(type, answer.body)
    const parts = await Promise.all(pieces.map((piece) => speak(piece, { response_format: format })))
    const seconds = await Promise.all(parts.map(async ({ body }) => (await decode(type, body)).seconds))
    const difference = whole.seconds - seconds.reduce((sum, part) => sum + part)
    // What an Opus decoder must skip at the beginning of a stream is heard where two streams were joined: 20 ms at most.
    expect(Math.abs(difference)).toBeLessThan(0.02 * pieces.length)
    expect(lab.simulator.violations).toEqual([])
  })

  it('over 4,096 characters is refused before anything is sent', async () => {
    const answer = await speak('😀'.repeat(4097))
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ param: 'input', code: 'string_above_max_length' })
    expect(lab.simulator.sessions).toEqual([])
  })
})
