import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { lastRequest } from '../support/last-request.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'
import { P3_MODEL, p3Text, startP3Gateway, type P3Gateway } from '../support/p3-gateway.js'
import { eventsOf, openRaw, sendRaw, type RawAnswer } from '../support/raw-http.js'

let lab: P3Gateway

beforeAll(async () => {
  lab = await startP3Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const speak = (body: string): Promise<RawAnswer> => sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })

/** What the upstream makes of the text in one of its own formats. */
async function spokenUpstream(text: string, audio_setting: object): Promise<Buffer> {
  const body = { model: P3_MODEL, text, voice_setting: { voice_id: 'Calm_Woman' }, audio_setting }
  const answer = await sendRaw(lab.simulator.url, {
    path: '/v1/t2a_v2',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${UPSTREAM_KEY}` },
  })
  return Buffer.from((JSON.parse(answer.text) as { data: { audio: string } }).data.audio, 'hex')
}

const SAMPLES = { format: 'pcm', sample_rate: 24_000, channel: 1 }
const WAV_HEADER_BYTES = 44

/** response_format, the type and the fallback the caller sees, what upstream is asked for, bytes before upstream's own. */
const FORMATS = [
  ['mp3', 'audio/mpeg', undefined, { format: 'mp3' }, 0],
  ['wav', 'audio/wav', undefined, SAMPLES, WAV_HEADER_BYTES],
  ['aac', 'audio/mpeg', 'mp3', { format: 'mp3' }, 0],
  ['flac', 'audio/flac', undefined, { format: 'flac' }, 0],
  ['opus', 'audio/opus', undefined, { format: 'opus' }, 0],
  ['pcm', 'audio/pcm', undefined, SAMPLES, 0],
] as const

interface SpeechEvent {
  readonly type: string
  readonly audio?: string
  readonly usage?: Readonly<Record<string, unknown>>
}

const TEXT = 'The kettle is on, and the cups are on the table.'

describe.each(FORMATS)('speech by P3 in %s', (response_format, type, fallback, setting, headerBytes) => {
  it('has the bytes of the upstream and the type of these bytes', async () => {
    const answer = await speak(p3Text(TEXT, { response_format }))
    expect(answer).toMatchObject({ status: 200, complete: true })
    expect(answer.headers['content-type']).toBe(type)
    expect(answer.headers['x-gateway-audio-fallback']).toBe(fallback)
    const upstream = await spokenUpstream(TEXT, setting)
    expect(upstream.length).toBeGreaterThan(1000)
    expect(answer.body.subarray(headerBytes).equals(upstream)).toBe(true)
    expect(answer.body.subarray(0, 4).toString('latin1') === 'RIFF').toBe(headerBytes > 0)
    expect(lab.simulator.violations).toEqual([])
  })

  it('has the same bytes as events', async () => {
    const raw = await speak(p3Text(TEXT, { response_format }))
    const answer = await speak(p3Text(TEXT, { response_format, stream_format: 'sse' }))
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(answer.headers['x-gateway-audio-fallback']).toBe(fallback)
    const events = eventsOf(answer.text)
    expect(events.at(-1)).toBe('[DONE]')
    const parsed = events.slice(0, -1).map((event) => JSON.parse(event) as SpeechEvent)
    expect(parsed.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { input_characters: TEXT.length } })
    const audio = Buffer.concat(parsed.map((event) => Buffer.from(event.audio ?? '', 'base64')))
    expect(audio.equals(raw.body)).toBe(true)
  })
})

describe.each(OPENAI_CLIENTS)('speech by P3 with %s', (_name, makeClient) => {
  it('is what the SDK expects', async () => {
    const response = await makeClient(lab.gateway).audio.speech.create({
      model: P3_MODEL,
      input: TEXT,
      voice: 'nova',
      response_format: 'flac',
    })
    expect(response.headers.get('content-type')).toBe('audio/flac')
    const upstream = await spokenUpstream(TEXT, { format: 'flac' })
    expect(Buffer.from(await response.arrayBuffer()).equals(upstream)).toBe(true)
  })
})

describe('whatever way the upstream puts it', () => {
  it.each(['#done', '#odd', '#aggregate', '#oneshot', '#order', '#order #aggregate', '#json', '#json #order'])(
    'the audio is the same with %s',
    async (words) => {
      const text = `${words} Hello.`
      const answer = await speak(p3Text(text, { response_format: 'pcm' }))
      expect(answer).toMatchObject({ status: 200, complete: true })
      expect(answer.body.equals(await spokenUpstream(text, SAMPLES))).toBe(true)
    },
  )
})

describe('the first byte of a speech by P3', () => {
  it.each([{}, { stream_format: 'sse' }, { response_format: 'wav' }])(
    'reaches the caller while the upstream is still speaking (%j)',
    async (more) => {
      lab.simulator.queueFault('stall')
      const arrived = lab.simulator.nextRequest()
      const response = await openRaw(lab.gateway.url, { path: SPEECH_PATH, body: p3Text(TEXT, more) })
      const [first] = (await response.take(1).toArray()) as Buffer[]
      expect(first?.length).toBeGreaterThan(0)
      expect((await arrived).closedAtMs).toBeUndefined()
      const aborted = lab.simulator.nextAbort()
      response.destroy()
      await aborted
    },
  )
})

describe('the log of a speech by P3', () => {
  it.each([
    ['你好', { units: { input_characters: 4 }, estimated: false }],
    ['#nousage 你好', { units: { input_characters: 13 }, estimated: true }],
  ])('counts %s as the upstream bills it, or here where it says nothing', async (text, usage) => {
    const answer = await speak(p3Text(text))
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ usage, model: P3_MODEL, channel: 'first' })
    expect(line['upstreamRequestId']).toMatch(/^[0-9a-f]{32}$/)
  })
})

describe('a group of an older host', () => {
  it('is named in the query where the channel has one', async () => {
    const groupId = '1234567890'
    const older = await startP3Gateway({ simulator: { groupId }, channel: { options: { groupId } } })
    try {
      expect((await sendRaw(older.gateway.url, { path: SPEECH_PATH, body: p3Text('Hello') })).status).toBe(200)
      expect(lastRequest(older.simulator).query.getAll('GroupId')).toEqual([groupId])
      expect((await speak(p3Text('Hello'))).status).toBe(200)
      expect(lastRequest(lab.simulator).query.size).toBe(0)
    } finally {
      await older.close()
    }
  })
})
