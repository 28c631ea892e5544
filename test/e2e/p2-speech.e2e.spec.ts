import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import type { JsonObject } from '@multi-model-gateway/sandbox/server/json-value.js'
import type { SocketFault } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { AUDIO_FORMATS } from '../../src/dialects/speech-formats.js'
import { decode } from '../support/audio-decoders.js'
import { ABORT_LIMIT_MS, promised } from '../support/eventually.js'
import { startCall } from '../support/failing-calls.js'
import {
  errorOf,
  eventsOf,
  openRaw,
  type RawAnswer,
  sendRaw,
  SPEECH_PATH,
  type TestGateway,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  P2_ACCESS_TOKEN,
  P2_APP_ID,
  P2_MODEL,
  P2_UPSTREAM_KEY,
  type P2Gateway,
  p2Text,
  startP2Gateway,
  withP2Gateway,
} from '../support/provider-gateways.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'

const LONG = '#bytes=60000000'
const SENTENCE = 'Hello there, this is a sentence that takes the upstream some frames to say.'

describe('p2 speech', () => {
  let lab: P2Gateway
  shareLab(async () => (lab = await startP2Gateway({ withSecond: true, simulator: { gapMs: 60_000 } })))

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
      const params = { model: P2_MODEL, input: 'Hello', voice: 'nova' } as const
      const response = await makeClient(lab.gateway).audio.speech.create(params)
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
      lab.simulator.queueFault('#slow')
      const body = p2Text('Hello, this is a sentence.')
      const response = await openRaw(lab.gateway.url, { path: SPEECH_PATH, body })
      const [first] = (await response.take(1).toArray()) as Buffer[]
      expect(first?.length).toBeGreaterThan(0)
      expect(lab.simulator.lastSession?.end).toBeUndefined()
      response.destroy()
      await lab.simulator.idle()
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

  describe('a client of P2 that disconnects', () => {
    it.each([
      ['while the upgrade is not answered', { kind: 'hang' }, 'handshake'],
      ['before the first audio', '#hang', 'session'],
    ] as const)('%s ends the connection of the upstream within a second', async (_name, fault, event) => {
      const { gateway, simulator, second } = lab
      simulator.queueFault(fault)
      const arrived = new Promise((resolve) => simulator.once(event, resolve))
      const closed = simulator.nextClose()
      const requestId = `left-${event}`
      const disconnect = startCall(gateway, {
        path: SPEECH_PATH,
        body: p2Text(SENTENCE),
        headers: { 'x-request-id': requestId },
      })
      await arrived
      const leftAtMs = performance.now()
      disconnect()
      await closed
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
      expect(await gateway.logLine(requestId)).toMatchObject({ status: 499, channel: 'first', attempts: 1 })
      expect(second.sessions).toEqual([])
    })

    it.each(['audio', 'sse'])('in the middle of %s ends it within a second, too', async (stream_format) => {
      const { gateway, simulator } = lab
      simulator.queueFault('#slow')
      const body = p2Text(SENTENCE, { stream_format })
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body })
      await once(response, 'data')
      const aborted = simulator.nextAbort()
      const leftAtMs = performance.now()
      response.destroy()
      const session = await aborted
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
      expect(session.end?.by).toBe('client')
      await simulator.idle()
      expect(simulator.openConnections).toBe(0)
    })

    it('between two pieces asks for no further one', async () => {
      const { gateway, simulator } = lab
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body: p2Text('Hello there. '.repeat(200)) })
      await once(response, 'data')
      response.destroy()
      await simulator.idle()
      const { length } = simulator.sessions
      expect(length).toBeLessThan(3)
      expect((await speak('Hello.')).status).toBe(200)
      expect(simulator.sessions).toHaveLength(length + 1)
    })
  })
})

describe('p2 speech fields', () => {
  const OWN_VOICE = 'zh_male_wenrouxiaoge_mars_bigtts'

  let lab: P2Gateway
  let callers: P2Gateway

  const options = { voices: { alloy: OWN_VOICE, house: 'S_house' }, speedRange: { minimum: 0.9, maximum: 1.5 } }
  shareLab(async () => (lab = await startP2Gateway({ channel: { options } })))
  shareLab(async () => (callers = await startP2Gateway({ channel: { credentials: 'caller' } })))

  const speak = (more: object, input = 'Hello there.', { gateway } = lab): Promise<RawAnswer> =>
    sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(input, more) })

  /** The section of the one request that the upstream has received. */
  function sent(section: string): JsonObject {
    const [request, ...more] = lab.simulator.sessions.flatMap(({ decoded }) => decoded)
    expect(more).toEqual([])
    return request?.[section] as JsonObject
  }

  describe('the voice of a speech at P2', () => {
    it.each([
      ['echo', 'zh_male_wenhao_mars_bigtts'],
      ['fable', 'zh_female_tianmei_mars_bigtts'],
      ['onyx', 'zh_male_zhibei_mars_bigtts'],
      ['nova', 'zh_female_shuangkuaisisi_mars_bigtts'],
      ['shimmer', 'zh_female_cancan_mars_bigtts'],
      ['alloy', OWN_VOICE],
      ['zh_male_yangguangqingnian_moon_bigtts', 'zh_male_yangguangqingnian_moon_bigtts'],
    ])('%s is %s, as the table and then the channel say', async (voice, preset) => {
      expect((await speak({ voice })).status).toBe(200)
      expect(sent('audio')['voice_type']).toBe(preset)
    })

    it('given by its id is sent as it is', async () => {
      expect((await speak({ voice: { id: 'zh_female_cancan_mars_bigtts' } })).status).toBe(200)
      expect(sent('audio')['voice_type']).toBe('zh_female_cancan_mars_bigtts')
    })

    it.each(['no-such-voice', 'constructor', '__proto__'])(
      '%j, which the upstream does not know, is refused',
      async (voice) => {
        const answer = await speak({ voice })
        expect(answer.status).toBe(400)
        const words = { param: 'voice', code: 'voice_not_found', message: 'voice type not exist' }
        expect(errorOf(answer)).toMatchObject(words)
        expect(sent('audio')['voice_type']).toBe(voice)
      },
    )
  })

  describe('the speed of a speech at P2', () => {
    it.each([
      [undefined, 1],
      [1.2, 1.2],
      [0.25, 0.9],
      [4, 1.5],
    ])('%s is %s within the range of the channel', async (speed, ratio) => {
      expect((await speak({ speed })).status).toBe(200)
      expect(sent('audio')['speed_ratio']).toBe(ratio)
    })

    it.each([
      [1.1, 1.1],
      [0.1, 0.9],
      [2, 1.5],
    ])('%s of the metadata, which comes first, is %s within the same range', async (speedRatio, ratio) => {
      expect((await speak({ speed: 1.3, metadata: { audio: { speed_ratio: speedRatio } } })).status).toBe(200)
      expect(sent('audio')['speed_ratio']).toBe(ratio)
    })
  })

  describe('the metadata of a speech at P2', () => {
    it('lies over the request', async () => {
      const metadata = {
        audio: { loudness_ratio: 1.5, enable_emotion: true, emotion: 'happy', speed_ratio: 1.1 },
        request: { silence_duration: 200, enable_trailing_silence_audio: true, extra_param: { aigc_watermark: true } },
      }
      expect((await speak({ metadata })).status).toBe(200)
      expect(sent('audio')).toMatchObject(metadata.audio)
      expect(sent('request')).toMatchObject({ silence_duration: 200, extra_param: '{"aigc_watermark":true}' })
      expect(lab.simulator.violations).toEqual([])
    })

    it.each([
      ['metadata.app', { app: { appid: 'mine' } }],
      ['metadata.user', { user: { uid: 'mine' } }],
      ['metadata.audio.encoding', { audio: { encoding: 'wav' } }],
      ['metadata.audio.voice_type', { audio: { voice_type: 'mine' } }],
      ['metadata.request.text', { request: { text: 'mine' } }],
      ['metadata.request.reqid', { request: { reqid: 'mine' } }],
      ['metadata.request.operation', { request: { operation: 'query' } }],
      ['metadata.request.model', { request: { model: 'mine' } }],
      ['metadata.audio.loudness_ratio', { audio: { loudness_ratio: 9 } }],
    ])('may not hold %s', async (param, metadata) => {
      const answer = await speak({ metadata })
      expect(answer.status).toBe(400)
      expect(errorOf(answer).param).toBe(param)
      expect(lab.simulator.sessions).toEqual([])
    })

    it('makes marked-up text one piece, which is refused when it is too long for that', async () => {
      const metadata = { request: { text_type: 'ssml' } }
      expect((await speak({ metadata }, '<speak>Hello there.</speak>')).status).toBe(200)
      expect(sent('request')).toMatchObject({ text: '<speak>Hello there.</speak>', text_type: 'ssml' })
      const answer = await speak({ metadata }, `<speak>${'Hello there. '.repeat(100)}</speak>`)
      expect([answer.status, errorOf(answer).param]).toEqual([400, 'input'])
      expect(lab.simulator.sessions).toHaveLength(1)
    })
  })

  describe('the text of a speech at P2', () => {
    it('that says nothing is judged by the upstream', async () => {
      const answer = await speak({}, '?!')
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toMatchObject({ param: 'input', message: 'illegal input text!' })
    })

    it('that says nothing for a while is spoken without that part', async () => {
      expect((await speak({}, `Hello.${' \n.'.repeat(700)} Goodbye.`)).status).toBe(200)
      const texts = lab.simulator.sessions.flatMap(({ decoded }) => decoded.map(({ request }) => request as JsonObject))
      for (const { text } of texts) expect(text).toMatch(/[a-z]/i)
    })

    it('comes without style instructions, which no model of P2 knows', async () => {
      expect((await speak({ instructions: 'Whisper.' })).status).toBe(200)
      expect(JSON.stringify(lab.simulator.lastSession?.decoded)).not.toContain('Whisper')
    })
  })

  describe('a caller with a pair of their own', () => {
    const speakAs = (bearer: string): Promise<RawAnswer> =>
      sendRaw(callers.gateway.url, {
        path: SPEECH_PATH,
        body: p2Text('Hello there.'),
        headers: { authorization: `Bearer ${bearer}` },
      })

    it('is served with it', async () => {
      expect((await speakAs(P2_UPSTREAM_KEY)).status).toBe(200)
      expect(callers.simulator.lastSession?.decoded).toMatchObject([{ app: { appid: P2_APP_ID } }])
      expect(callers.simulator.lastSession?.handshake.headers['authorization']).toBe(`Bearer;${P2_ACCESS_TOKEN}`)
    })

    it.each([
      ['that is malformed (one-part) is refused with 401 before anything is sent', 'one-part', 0],
      ['that is malformed (a|b|c) is refused with 401 before anything is sent', 'a|b|c', 0],
      ['that is malformed (|b) is refused with 401 before anything is sent', '|b', 0],
      ['that is malformed (a|) is refused with 401 before anything is sent', 'a|', 0],
      ['whose token the upstream does not accept is refused with 401, too', `${P2_APP_ID}|stranger`, 1],
      ['whose app the upstream does not accept is refused with 401, too', `stranger|${P2_ACCESS_TOKEN}`, 1],
    ])('%s', async (_name, bearer, sessions) => {
      const answer = await speakAs(bearer)
      expect(answer.status).toBe(401)
      expect(errorOf(answer)).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
      expect(callers.simulator.sessions).toHaveLength(sessions)
    })
  })
})

describe('p2 speech faults', () => {
  const FORMS = ['audio', 'sse'] as const

  let lab: P2Gateway

  const timeouts = { connectMs: 5_000, firstByteMs: 700, idleMs: 700 }
  shareLab(async () => (lab = await startP2Gateway({ simulator: { gapMs: 60_000 }, channel: { timeouts } })))

  const speak = (stream_format: string, { gateway } = lab): Promise<RawAnswer> =>
    sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE, { stream_format, response_format: 'pcm' }) })

  async function speakWith(fault: SocketFault, form: string): Promise<RawAnswer> {
    lab.simulator.queueFault(fault)
    return await speak(form)
  }

  const status = (code: number, body = '{"code":3001,"message":"words of the upstream"}'): SocketFault => ({
    kind: 'status',
    status: code,
    body,
  })

  const FAILED = [500, 'upstream_error', 'upstream_failed'] as const
  const OVERLOADED = [500, 'upstream_error', 'upstream_overloaded'] as const
  const TIMED_OUT = [500, 'upstream_error', 'upstream_timeout'] as const
  const BUSY = [429, 'rate_limit_error', 'rate_limit_exceeded'] as const

  /** Failures before the first audio, and what the caller sees: status, type, code, param. */
  const REFUSALS: readonly (readonly [string, SocketFault, readonly [number, string, string | null, string?]])[] = [
    ['3001', '#err3001', [400, 'invalid_request_error', null]],
    ['3003', '#err3003', BUSY],
    ['3005', '#err3005', FAILED],
    ['3006', '#err3006', FAILED],
    ['3010', '#err3010', [400, 'invalid_request_error', 'string_above_max_length', 'input']],
    ['3011', '#err3011', [400, 'invalid_request_error', 'invalid_value', 'input']],
    ['3030', '#err3030', TIMED_OUT],
    ['3031', '#err3031', FAILED],
    ['3032', '#err3032', TIMED_OUT],
    ['3040', '#err3040', FAILED],
    ['3050', '#err3050', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
    ['3050, compressed', '#err3050 #gziperr', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
    ['3050 as JSON', '#err3050 #jsonerr', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
    ['an unknown code', '#err4711', FAILED],
    ['an unknown grant', '#errgrant', FAILED],
    ['a used-up trial', '#errquota', FAILED],
    ['too many at a time', '#errconcurrency', BUSY],
    ['a voice that the account has not bought', '#erraccess', FAILED],
    ['a voice of another cluster', '#errengine', FAILED],
    ['a frame that is none', '#garbage', FAILED],
    ['a text message', '#textframe', FAILED],
    ['silence', '#hang', TIMED_OUT],
    ['silence instead of the upgrade', { kind: 'hang' }, TIMED_OUT],
    ['a reset instead of the upgrade', { kind: 'reset' }, FAILED],
    ['401 instead of the upgrade', status(401), FAILED],
    ['403 instead of the upgrade', status(403), FAILED],
    ['404 instead of the upgrade', status(404), FAILED],
    ['429 instead of the upgrade', status(429), BUSY],
    ['500 instead of the upgrade', status(500), FAILED],
    ['503 without JSON instead of the upgrade', status(503, '<html>'), OVERLOADED],
  ]

  describe.each(FORMS)('a P2 that fails before the first audio, asked for %s', (form) => {
    it.each(REFUSALS)('with %s', async (_name, fault, [httpStatus, type, code, param = null]) => {
      const answer = await speakWith(fault, form)
      expect(answer.status).toBe(httpStatus)
      expect(answer.headers['content-type']).toBe('application/json')
      expect(errorOf(answer)).toMatchObject({ type, code, param })
      const saysWhen = code === 'rate_limit_exceeded' || code === 'upstream_overloaded'
      expect(answer.headers['retry-after']).toBe(saysWhen ? '1' : undefined)
      expect(answer.text).not.toMatch(/grant|resource|Engine|lifetime|words/)
      await lab.simulator.idle()
      expect(lab.simulator.openConnections).toBe(0)
    })

    it.each(['#errgrant', '#errquota', '#erraccess', status(401)])(
      'for the account of the channel (%j) says that no retry helps',
      async (fault) => {
        expect((await speakWith(fault, form)).headers['x-should-retry']).toBe('false')
      },
    )

    it('shows its words where the caller can do something about it', async () => {
      expect(errorOf(await speakWith('#err3050', form)).message).toBe('voice type not exist')
      expect(errorOf(await speakWith('#err3050 #gziperr #jsonerr', form)).message).toBe('voice type not exist')
    })
  })

  const MIDDLE: readonly (readonly [string, string])[] = [
    ['#errmid', 'upstream_failed'],
    ['#errmid #err3003', 'rate_limited'],
    ['#cut', 'upstream_failed'],
    ['#closeearly', 'upstream_failed'],
    ['#slow', 'upstream_timeout'],
  ]

  describe('a P2 that fails in the middle of its audio', () => {
    it.each(MIDDLE)('(%s) cuts raw audio off, so that it cannot pass for whole', async (fault, kind) => {
      const answer = await speakWith(fault, 'audio')
      expect(answer).toMatchObject({ status: 200, complete: false })
      expect(answer.body.length).toBeGreaterThan(0)
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ status: 200, failure: { kind } })
      // A chunk that was not spoken to its end is not charged.
      expect(line).not.toHaveProperty('usage')
      await lab.simulator.idle()
    })

    it.each(FORMS)('charges for the pieces before the one that broke, asked for %s', async (stream_format) => {
      const text = `${SENTENCE} `.repeat(20) + '#cut in the middle of this.'
      const body = p2Text(text, { stream_format, response_format: 'pcm' })
      const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })
      const pieces = lab.simulator.sessions.map(({ decoded }) => String(requestOf(decoded[0])['text']))
      expect([pieces.length, pieces.join('')]).toEqual([2, text])
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      const units = { input_characters: pieces[0]?.length, spoken_seconds: expect.any(Number) }
      expect(line['usage']).toEqual({ units, estimated: true })
    })

    it.each(MIDDLE)('(%s) ends events with one error and nothing after it', async (fault) => {
      const answer = await speakWith(fault, 'sse')
      expect(answer).toMatchObject({ status: 200, complete: true })
      const events = eventsOf(answer.text)
      expect(events[0]).toContain('speech.audio.delta')
      expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { param: null } })
      expect(answer.text).not.toMatch(/speech\.audio\.done|\[DONE\]/)
    })
  })

  const requestOf = (sent: JsonObject | undefined): JsonObject => sent?.['request'] as JsonObject

  describe('the odd ways of P2', () => {
    it.each(['#noack', '#bareack', '#flag2', '#flag2bare', '#merge', '#emptylast'])(
      '(%s) change no byte',
      async (way) => {
        const plain = await speak('audio')
        const odd = await speakWith(way, 'audio')
        expect(odd).toMatchObject({ status: 200, complete: true })
        expect(odd.body.equals(plain.body)).toBe(true)
        expect(lab.simulator.violations).toEqual([])
      },
    )
  })

  describe('the credentials of a channel at P2', () => {
    it('are in no answer and in no log, whatever happens', async () => {
      for (const simulator of [
        { apiKey: 'other-app|other-token' },
        { apiKey: 'other-app|other-token', wrongToken: 'frame' },
      ]) {
        await withP2Gateway({ simulator: simulator as { apiKey: string } }, async (refused) => {
          const answer = await speak('audio', refused)
          expect([answer.status, answer.headers['x-should-retry']]).toEqual([500, 'false'])
          const line = await refused.gateway.logLine(String(answer.headers['x-request-id']))
          expect(JSON.stringify(line['failure'])).toContain('requested grant not found')
          expectNoCanary(`${JSON.stringify(answer.headers)}${answer.text}${refused.gateway.logText()}`)
        })
      }
      for (const [, fault] of REFUSALS) {
        const answer = await speakWith(fault, 'audio')
        expectNoCanary(`${JSON.stringify(answer.headers)}${answer.text}`)
      }
      const quoting = await speakWith(status(401, `{"message":"bad ${P2_APP_ID} ${P2_ACCESS_TOKEN}"}`), 'audio')
      expectNoCanary(quoting.text)
      await lab.gateway.logLine(String(quoting.headers['x-request-id']))
      expectNoCanary(lab.gateway.logText())
    })
  })

  function expectNoCanary(text: string): void {
    expect(text.length).toBeGreaterThan(100)
    for (const canary of [P2_APP_ID, P2_ACCESS_TOKEN]) expect(text).not.toContain(canary)
  }
})

describe('a caller of P2 who reads slowly', () => {
  let lab: P2Gateway
  shareLab(async () => (lab = await startP2Gateway({ channel: { timeouts: { idleMs: 400 } } })))

  it.each(['audio', 'sse'])('slows the upstream, and loses nothing of %s', async (stream_format) => {
    const { gateway, simulator } = lab
    const arrived = simulator.nextSession()
    const body = p2Text(LONG, { response_format: 'pcm', stream_format })
    const response = await openRaw(gateway.url, { path: SPEECH_PATH, body })
    const session = await arrived
    // Longer than the upstream may be silent: a pause of the caller's is not its silence.
    expect(await session.nextStall(800)).toBe(true)
    expect(session.sentBytes).toBeLessThan(40_000_000)
    let received = 0
    for await (const chunk of response) received += (chunk as Buffer).length
    if (stream_format === 'audio') expect(received).toBe(60_000_000)
    // Base64 takes a third more, and each event a little around it.
    else expect(received).toBeGreaterThan(80_000_000)
  })
})

describe('a second channel at P2', () => {
  const FAULTS: readonly SocketFault[] = [
    '#err3003',
    '#err3005',
    '#err3006',
    '#err3031',
    '#errgrant',
    '#errquota',
    '#garbage',
    '#hang',
    { kind: 'reset' },
    { kind: 'hang' },
    { kind: 'status', status: 401, body: '{}' },
    { kind: 'status', status: 404, body: '' },
    { kind: 'status', status: 429, body: '{}' },
    { kind: 'status', status: 500, body: '' },
  ]
  const TWO = {
    withSecond: true,
    channel: { timeouts: { firstByteMs: 500 } },
    // One failure is enough.
    sections: { breaker: { failures: 1 } },
  }

  const speakTo = ({ url }: TestGateway): Promise<RawAnswer> =>
    sendRaw(url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })

  it.each(FAULTS)('speaks when the first fails with %j', async (fault) => {
    await withP2Gateway(TWO, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      const answer = await speakTo(gateway)
      expect(answer).toMatchObject({ status: 200, complete: true })
      expect([simulator.sessions.length, second.sessions.length]).toEqual([1, 1])
      const line = await gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ attempts: 2, channel: 'second' })
      // The first is left alone for a while.
      expect((await speakTo(gateway)).status).toBe(200)
      expect([simulator.sessions.length, second.sessions.length]).toEqual([1, 2])
    })
  })

  describe('that is not needed', () => {
    let two: P2Gateway
    shareLab(async () => (two = await startP2Gateway(TWO)))

    it.each(['#err3001', '#err3010', '#err3011', '#err3050'])(
      'is not asked when the caller is at fault (%s)',
      async (fault) => {
        const { gateway, simulator, second } = two
        simulator.queueFault(fault)
        expect((await speakTo(gateway)).status).toBe(400)
        expect(second.sessions).toEqual([])
        expect((await speakTo(gateway)).status).toBe(200)
        expect(simulator.sessions).toHaveLength(2)
      },
    )
  })

  it.each(['#cut', '#closeearly', '#errmid'])('never begins again what has begun (%s)', async (fault) => {
    await withP2Gateway(TWO, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      const answer = await speakTo(gateway)
      expect(answer).toMatchObject({ status: 200, complete: false })
      expect(second.sessions).toEqual([])
    })
  })
})
