import { describe, expect, it } from '@jest/globals'
import { STATUS_MESSAGES } from '@multi-model-gateway/sandbox/p3/p3-errors.js'
import type { SpeechCreateParams } from 'openai/resources/audio/speech'
import { ABORT_LIMIT_MS, promised } from '../support/eventually.js'
import { expectRefused, readAndLeave, startCall, SHORT_TIMEOUTS, timeAbort } from '../support/failing-calls.js'
import {
  errorOf,
  eventsOf,
  lastRequest,
  openRaw,
  type RawAnswer,
  sendRaw,
  SPEECH_PATH,
  speechText,
  TEST_KEY,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  type P1Gateway,
  P3_MODEL,
  type P3Gateway,
  p3Text,
  startP1Gateway,
  startP3Gateway,
  UPSTREAM_KEY,
  withLab,
} from '../support/provider-gateways.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'

describe('speech', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway()))

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
      const params = { model: 'tts-1', input: 'Hello', voice: 'alloy' } as const
      const response = await makeClient(lab.gateway).audio.speech.create(params)
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
      for (const model of ['tts-1', 'tts-1-hd'])
        expect(await sentAfter(body(model, instructions))).toBe(body(model, ''))
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
      const headers = { 'content-type': 'text/event-stream' }
      lab.simulator.queueFault({ kind: 'status', status: 200, headers, body: frames })
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

  const MISSING = 'missing_required_parameter'
  const TYPE = 'invalid_type'

  const CASES: readonly (readonly [fields: object, param: string, code: string])[] = [
    [{ model: undefined }, 'model', MISSING],
    [{ model: null }, 'model', MISSING],
    [{ model: [] }, 'model', TYPE],
    [{ model: '' }, 'model', 'empty_string'],
    [{ input: undefined }, 'input', MISSING],
    [{ input: null }, 'input', MISSING],
    [{ input: 7 }, 'input', TYPE],
    [{ input: '' }, 'input', 'empty_string'],
    [{ input: ' \t\r\n\u3000\u00a0' }, 'input', 'empty_string'],
    [{ input: 'a'.repeat(4097) }, 'input', 'string_above_max_length'],
    [{ input: '😀'.repeat(4097) }, 'input', 'string_above_max_length'],
    [{ voice: undefined }, 'voice', MISSING],
    [{ voice: null }, 'voice', MISSING],
    [{ voice: 7 }, 'voice', TYPE],
    [{ voice: '' }, 'voice', TYPE],
    [{ voice: {} }, 'voice', TYPE],
    [{ voice: { id: 7 } }, 'voice', TYPE],
    [{ voice: { id: '' } }, 'voice', TYPE],
    [{ instructions: 7 }, 'instructions', TYPE],
    [{ response_format: 'ogg' }, 'response_format', 'invalid_audio_format'],
    [{ response_format: 'MP3' }, 'response_format', 'invalid_audio_format'],
    [{ response_format: '' }, 'response_format', 'invalid_audio_format'],
    [{ response_format: 7 }, 'response_format', TYPE],
    [{ speed: 0.24 }, 'speed', 'decimal_below_min_value'],
    [{ speed: 4.01 }, 'speed', 'decimal_above_max_value'],
    [{ speed: '1' }, 'speed', TYPE],
    [{ stream_format: 'events' }, 'stream_format', 'invalid_value'],
    [{ stream_format: true }, 'stream_format', TYPE],
    [{ metadata: 'x' }, 'metadata', TYPE],
    [{ metadata: [] }, 'metadata', TYPE],
  ]

  describe('a speech request is refused before the upstream hears of it, and the field at fault is named', () => {
    it.each(CASES)('%j → %s %s', async (fields, param, code) => {
      await expectRefused(lab, { path: SPEECH_PATH, body: speechText('Hello', fields) }, { status: 400, code, param })
    })
  })

  describe('a speech request is not refused', () => {
    it.each([
      ['for 4096 characters', { input: 'a '.repeat(2048) }],
      ['for 4096 characters of two UTF-16 units each', { input: '😀'.repeat(4096) }],
      ['for the lowest speed', { speed: 0.25 }],
      ['for the highest speed', { speed: 4.0 }],
      ['for a voice of the upstream beyond the six', { voice: 'sage' }],
      ['for a custom voice', { voice: { id: 'voice_123' } }],
    ])('%s', async (_name, fields) => {
      const body = speechText('Hello', { response_format: 'pcm', ...fields })
      const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })
      expect(answer.status).toBe(200)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    })
  })
})

describe('p3 speech', () => {
  let lab: P3Gateway
  shareLab(async () => (lab = await startP3Gateway()))

  const TEXT = 'The kettle is on, and the cups are on the table.'

  const speak = (more: object = {}, text = TEXT, of = lab): Promise<RawAnswer> =>
    sendRaw(of.gateway.url, { path: SPEECH_PATH, body: p3Text(text, more) })

  interface UpstreamAnswer {
    /** In hexadecimal digits, or a link to it. */
    readonly data: { readonly audio: string }
    readonly extra_info: { readonly audio_size: number }
  }

  /** What the upstream itself answers when it is asked for this text. */
  async function askUpstream(text: string, audio_setting: object, more: object = {}): Promise<UpstreamAnswer> {
    const body = { model: P3_MODEL, text, voice_setting: { voice_id: 'Calm_Woman' }, audio_setting, ...more }
    const headers = { authorization: `Bearer ${UPSTREAM_KEY}` }
    const answer = await sendRaw(lab.simulator.url, { path: '/v1/t2a_v2', body: JSON.stringify(body), headers })
    return JSON.parse(answer.text) as UpstreamAnswer
  }

  /** What the upstream makes of the text in one of its own formats. */
  const spokenUpstream = async (text: string, setting: object): Promise<Buffer> =>
    Buffer.from((await askUpstream(text, setting)).data.audio, 'hex')

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

  describe.each(FORMATS)('speech by P3 in %s', (response_format, type, fallback, setting, headerBytes) => {
    it('has the bytes of the upstream and the type of these bytes', async () => {
      const answer = await speak({ response_format })
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
      const raw = await speak({ response_format })
      const answer = await speak({ response_format, stream_format: 'sse' })
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
        const answer = await speak({ response_format: 'pcm' }, text)
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
      const answer = await speak({}, text)
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ usage, model: P3_MODEL, channel: 'first' })
      expect(line['upstreamRequestId']).toMatch(/^[0-9a-f]{32}$/)
    })
  })

  describe('a group of an older host', () => {
    it('is named in the query where the channel has one', async () => {
      const groupId = '1234567890'
      await withLab(startP3Gateway({ simulator: { groupId }, channel: { options: { groupId } } }), async (older) => {
        expect((await speak({}, 'Hello', older)).status).toBe(200)
        expect(lastRequest(older.simulator).query.getAll('GroupId')).toEqual([groupId])
        expect((await speak({}, 'Hello')).status).toBe(200)
        expect(lastRequest(lab.simulator).query.size).toBe(0)
      })
    })
  })

  const SUBTITLES = { subtitle_enable: true }
  const LINK = { output_format: 'url' }

  async function subtitlesOf(answer: RawAnswer): Promise<string> {
    const response = await fetch(String(answer.headers['x-subtitle-url']))
    return ((await response.json()) as { text: string }[]).map(({ text }) => text).join(' ')
  }

  describe.each(['mp3', 'wav', 'flac', 'pcm'])('speech in %s', (response_format) => {
    it.each([
      ['with subtitles', SUBTITLES],
      ['behind a link', LINK],
      ['with subtitles, behind a link', { ...SUBTITLES, ...LINK }],
    ])('%s has the same bytes as without', async (_name, metadata) => {
      const plain = await speak({ response_format })
      const answer = await speak({ response_format, metadata })
      expect(answer).toMatchObject({ status: 200, complete: true })
      expect(answer.body.equals(plain.body)).toBe(true)
      expect(answer.headers['content-type']).toBe(plain.headers['content-type'])
      expect('x-subtitle-url' in answer.headers).toBe('subtitle_enable' in metadata)
      if ('subtitle_enable' in metadata) expect(await subtitlesOf(answer)).toBe(TEXT)
      expect(lab.simulator.violations).toEqual([])
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ usage: { units: { input_characters: TEXT.length }, estimated: false } })
      expect(line['upstreamRequestId']).toMatch(/^[0-9a-f]{32}$/)
    })

    it('with subtitles comes as events, too', async () => {
      const answer = await speak({ response_format, metadata: SUBTITLES, stream_format: 'sse' })
      const events = eventsOf(answer.text)
      expect(events.at(-1)).toBe('[DONE]')
      const parsed = events.slice(0, -1).map((event) => JSON.parse(event) as { audio?: string })
      const audio = Buffer.concat(parsed.map((event) => Buffer.from(event.audio ?? '', 'base64')))
      expect(audio.equals((await speak({ response_format })).body)).toBe(true)
      expect(answer.headers['x-subtitle-url']).toMatch(/^http:/)
      expect(answer.headers['content-length']).toBeUndefined()
    })
  })

  describe('speech with subtitles', () => {
    it('says how long it is, as all of it is at hand', async () => {
      const answer = await speak({ metadata: SUBTITLES })
      expect(answer.headers['content-length']).toBe(String(answer.body.length))
    })

    it('that breaks off is an error, not half a speech', async () => {
      for (const word of ['#cut', '#badhex', '#oddhex']) {
        expect((await speak({ metadata: SUBTITLES }, `${word} Hello there, a longer sentence.`)).status).toBe(500)
      }
    })
  })

  describe('a link to the audio', () => {
    it.each(['#urldead', '#urlprivate'])('that leads nowhere (%s) is the upstream’s failure', async (word) => {
      const answer = await speak({ metadata: LINK }, `${word} Hello`)
      expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(answer.text).not.toMatch(/169\.254|files/)
    })

    it('is not followed to a private address that is not exempted', async () => {
      await withLab(startP3Gateway({ fetchesLinks: false }), async (guarded) => {
        const answer = await speak({ metadata: LINK }, TEXT, guarded)
        expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
        expect(guarded.simulator.requests.map(({ method }) => method)).toEqual(['POST'])
      })
    })

    it('that does not work is tried on another channel', async () => {
      await withLab(startP3Gateway({ withSecond: true }), async (pair) => {
        const audio = `${pair.simulator.url}/files/none.mp3`
        const body = JSON.stringify({ data: { audio, status: 2 }, base_resp: { status_code: 0 } })
        pair.simulator.queueFault({ kind: 'status', status: 200, body })
        expect((await speak({ metadata: LINK }, TEXT, pair)).status).toBe(200)
        expect(pair.second.requests.map(({ method }) => method)).toEqual(['POST', 'GET'])
      })
    })

    it('to less audio than the upstream says it made is a visible cut', async () => {
      const made = await askUpstream(`${TEXT} `.repeat(20), { format: 'pcm', sample_rate: 24_000 }, LINK)
      const bytes = (await (await fetch(made.data.audio)).arrayBuffer()).byteLength
      expect(made.extra_info.audio_size).toBe(bytes)
      for (const complete of [true, false]) {
        const answered = { ...made, extra_info: { audio_size: complete ? bytes : bytes + 1 } }
        lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(answered) })
        const raw = await speak({ metadata: LINK, response_format: 'pcm' })
        expect([raw.status, raw.complete]).toEqual([200, complete])
        lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(answered) })
        const events = await speak({ metadata: LINK, response_format: 'pcm', stream_format: 'sse' })
        expect(eventsOf(events.text).at(-1) === '[DONE]').toBe(complete)
      }
    })

    it.each([
      ['is missing', { data: { audio: '', status: 2 } }],
      ['is no link', { data: { audio: 'fff364c4', status: 2 } }],
      ['is a file here', { data: { audio: 'file:///etc/passwd', status: 2 } }],
      ['is too long', { data: { audio: `https://example.com/${'x'.repeat(70_000)}`, status: 2 } }],
      ['stands in no object', []],
    ])('that %s is a broken answer', async (_fault, body) => {
      lab.simulator.queueFault({ kind: 'status', status: 200, body: JSON.stringify(body) })
      const answer = await speak({ metadata: LINK })
      expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
    })

    it('to a page instead of audio is the upstream’s failure', async () => {
      lab.simulator.once('request', () => {
        lab.simulator.queueFault('html')
      })
      const answer = await speak({ metadata: LINK })
      expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
    })
  })

  describe('a client that disconnects', () => {
    it.each([
      ['before the speech begins', 'hang', {}],
      ['in the middle of raw audio', 'stall', {}],
      ['in the middle of events', 'stall', { stream_format: 'sse' }],
      ['while the audio is kept for its subtitles', 'stall', { metadata: { subtitle_enable: true } }],
    ] as const)('%s ends the work of the upstream within a second', async (_when, fault, more) => {
      lab.simulator.queueFault(fault)
      const request = { path: SPEECH_PATH, body: p3Text('Hello there, a longer sentence.', more) }
      const elapsedMs = await timeAbort(lab.simulator, () => startCall(lab.gateway, request))
      expect(elapsedMs).toBeLessThan(promised(ABORT_LIMIT_MS))
    })

    it('after the first byte leaves nothing behind', async () => {
      lab.simulator.queueFault('stall')
      const aborted = lab.simulator.nextAbort()
      await readAndLeave(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('Hello there, a longer sentence.') })
      await aborted
      await lab.simulator.idle()
      expect(lab.simulator.activeRequests).toBe(0)
    })
  })
})

describe('p3 refusals', () => {
  let lab: P3Gateway
  shareLab(async () => (lab = await startP3Gateway({ channel: SHORT_TIMEOUTS })))

  const speak = (body: string, of = lab): Promise<RawAnswer> => sendRaw(of.gateway.url, { path: SPEECH_PATH, body })

  /** The gateway sends the upstream the key that its caller sent. */
  const CALLERS_KEYS = { channel: { credentials: 'caller' }, keys: [] }

  const CALLERS = [1026, 1027, 1042, 1043, 1044, 2013, 2037, 2039, 2042, 2048, 2054, 20132]
  const BUSY = [1002, 1039, 1041, 2045, 2056]

  const statusOf = (code: number): number => (CALLERS.includes(code) ? 400 : BUSY.includes(code) ? 429 : 500)

  const CODES = Object.keys(STATUS_MESSAGES).map((code) => [Number(code), statusOf(Number(code))] as const)
  /** Ways to ask, and the ways in which the upstream answers them. */
  const WAYS = [
    {},
    { stream_format: 'sse' },
    { metadata: { subtitle_enable: true } },
    { metadata: { output_format: 'url' } },
  ]

  describe('a refusal with HTTP 200', () => {
    it.each(CODES)('of the code %s is %s for the caller, however the speech was asked for', async (code, status) => {
      for (const way of WAYS) {
        const answer = await speak(p3Text(`#${code} Hello`, way))
        expect(answer.status).toBe(status)
        expect(answer.headers['content-type']).toBe('application/json')
        expect(answer.headers['retry-after']).toBe(status === 429 ? (code === 2056 ? '60' : '1') : undefined)
        // The upstream's message reaches the party at fault.
        expect(answer.text.includes(STATUS_MESSAGES[code] ?? '-')).toBe(status === 400)
      }
      const first = await speak(p3Text(`#errfirst=${code} Hello`))
      expect([first.status, errorOf(first).code]).toEqual([status, errorOf(await speak(p3Text(`#${code} Hello`))).code])
    })

    it('is spoken on by another channel where it is the channel’s fault, and nowhere else', async () => {
      for (const [code, status] of CODES) {
        await withLab(startP3Gateway({ withSecond: true }), async (pair) => {
          const body = JSON.stringify({ data: null, base_resp: { status_code: code, status_msg: 'x' } })
          pair.simulator.queueFault({
            kind: 'status',
            status: 200,
            headers: { 'content-type': 'application/json' },
            body,
          })
          const answer = await speak(p3Text('Hello'), pair)
          const isTriedAgain = status === 429 || status === 500
          expect([code, answer.status, pair.second.requests.length]).toEqual(
            isTriedAgain ? [code, 200, 1] : [code, status, 0],
          )
        })
      }
    })

    it.each([
      [2038, 403, 'permission_error'],
      [1008, 429, 'rate_limit_error'],
      [1004, 401, 'authentication_error'],
    ])('of the code %s is %s where the caller’s own key was sent', async (code, status, type) => {
      await withLab(startP3Gateway({ simulator: { apiKey: TEST_KEY }, ...CALLERS_KEYS }), async (own) => {
        const answer = await speak(p3Text(`#${code} Hello`), own)
        expect([answer.status, errorOf(answer).type]).toEqual([status, type])
      })
    })

    it('of the caller’s own key is the caller’s to know', async () => {
      await withLab(startP3Gateway({ simulator: { apiKey: 'another' }, ...CALLERS_KEYS }), async (own) => {
        const answer = await speak(p3Text('Hello'), own)
        expect([answer.status, errorOf(answer).type]).toEqual([401, 'authentication_error'])
        expect(own.simulator.lastRequest?.headers['authorization']).toBe(`Bearer ${TEST_KEY}`)
      })
    })
  })

  describe('a response with HTTP 200 and the status code', () => {
    it.each([-1, '0', '1004', null])('the status code %j is no speech, whatever else it holds', async (status_code) => {
      for (const [index, way] of WAYS.entries()) {
        lab.simulator.queueFault({
          kind: 'status',
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ data: { audio: 'fff364c4', status: 2 }, base_resp: { status_code, status_msg: 'x' } }),
        })
        const requestId = `status-${status_code}-${index}`
        const headers = { 'x-request-id': requestId }
        // The status code comes after the audio, so that only a cut can report it.
        const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('Hello', way), headers }).catch(
          () => undefined,
        )
        expect(answer?.status === 200 && answer.complete && !answer.text.includes('"error"')).toBe(false)
        expect(await lab.gateway.logLine(requestId)).toMatchObject({ failure: { kind: 'upstream_failed' } })
      }
    })
  })

  describe('a failure after the first byte', () => {
    it.each(['#cut', '#reset', '#badhex', '#oddhex', '#badframe', '#errmid=1002'])(
      'as with %s is a cut of raw audio, and one error frame without terminator among events',
      async (word) => {
        const raw = await speak(p3Text(`${word} Hello there, a longer sentence.`))
        expect(raw.status).toBe(200)
        expect(raw.body.length).toBeGreaterThan(0)
        expect(raw.complete).toBe(false)
        const events = eventsOf(
          (await speak(p3Text(`${word} Hello there, a longer sentence.`, { stream_format: 'sse' }))).text,
        )
        expect(events.length).toBeGreaterThan(1)
        const last = JSON.parse(events.at(-1) ?? '') as { error?: { code: string } }
        expect(last.error?.code).toBe(word === '#errmid=1002' ? 'rate_limit_exceeded' : 'upstream_failed')
        expect(events.some((event) => event === '[DONE]' || event.includes('speech.audio.done'))).toBe(false)
      },
    )
  })

  describe('an upstream in trouble', () => {
    it.each([
      ['#500', 500, 'upstream_failed'],
      ['#503', 500, 'upstream_overloaded'],
      ['#401', 500, 'upstream_failed'],
      ['#quota', 500, 'upstream_failed'],
      ['#429', 429, 'rate_limit_exceeded'],
      ['#html', 500, 'upstream_failed'],
      ['#empty', 500, 'upstream_failed'],
      ['#malformed', 500, 'upstream_failed'],
      ['#hang', 500, 'upstream_timeout'],
      ['#jsonerr', 500, 'upstream_failed'],
    ])('as with %s becomes %s %s for the caller', async (word, status, code) => {
      for (const way of WAYS) {
        const answer = await speak(p3Text(`${word} Hello`, way))
        expect([answer.status, errorOf(answer).code]).toEqual([status, code])
        expect(answer.text).not.toContain(UPSTREAM_KEY)
      }
    })

    it('that falls silent in the middle is a visible cut', async () => {
      const raw = await speak(p3Text('#stall Hello there.'))
      expect([raw.status, raw.complete]).toEqual([200, false])
    })
  })

  describe('a request that P3 could not honour', () => {
    it.each([
      [{ voice_setting: { pitch: 13 } }, 'metadata.voice_setting.pitch', 'decimal_above_max_value'],
      [{ voice_setting: { voice_id: 'other' } }, 'metadata.voice_setting.voice_id', 'unknown_parameter'],
      [{ output_format: 'mp3' }, 'metadata.output_format', 'invalid_value'],
      [{ model: 'speech-01-hd' }, 'metadata.model', 'unknown_parameter'],
      [{ audio_setting: {} }, 'metadata.audio_setting', 'unknown_parameter'],
    ])('is refused before the upstream hears of it: %j', async (metadata, param, code) => {
      await expectRefused(lab, { path: SPEECH_PATH, body: p3Text('Hello', { metadata }) }, { status: 400, code, param })
    })

    it('is refused for a text that is too long here, and at its border by the upstream', async () => {
      const body = p3Text('a '.repeat(5_001))
      const refusal = { status: 400, code: 'string_above_max_length', param: 'input' }
      await expectRefused(lab, { path: SPEECH_PATH, body }, refusal)
      const border = await speak(p3Text('a '.repeat(5_000)))
      expect([border.status, errorOf(border).message]).toEqual([400, expect.stringContaining('fewer than 10000')])
      const response = await openRaw(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('a '.repeat(5_000).slice(1)) })
      expect(response.statusCode).toBe(200)
      response.destroy()
    })
  })
})
