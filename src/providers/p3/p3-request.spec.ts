import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../../test/support/byte-streams.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall } from '../../../test/support/raw-upstream.js'
import { type ErrorKind, GatewayError } from '../../core/errors.js'
import type { RequestLog } from '../../core/request-context.js'
import { AUDIO_FORMATS } from '../../dialects/speech-formats.js'
import type { AttemptContext, SpeechFields } from '../contract.js'
import { P3_STATUS_CODES, p3Failure, parseP3Error } from './p3-error.js'
import { P3ResponseMetadata } from './p3-response-metadata.js'
import { P3_VOICES, p3Request, readP3Metadata } from './p3-request.js'
import type { P3Envelope } from './p3-stream.js'

function refusal(metadata: Record<string, unknown>): { readonly param: unknown; readonly code: unknown } {
  try {
    readP3Metadata(metadata)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'invalid_request') {
      return { param: error.details.param, code: error.details.code }
    }
    throw error
  }
  throw new Error('nothing was refused')
}

const voice = (voice_setting: object): Record<string, unknown> => ({ voice_setting })

describe('the metadata for P3', () => {
  it.each([undefined, null, {}, { voice_setting: null, language_boost: null, subtitle_enable: null }])(
    'asks for nothing in %j',
    (metadata) => {
      expect(readP3Metadata(metadata)).toEqual({ voiceSetting: {}, subtitles: false, outputFormat: 'hex', others: {} })
    },
  )

  it('holds the specification’s table, and what else upstream shapes a voice with', () => {
    const voice_setting = { speed: 0.5, vol: 0.1, emotion: 'happy', text_normalization: true, latex_read: false }
    const others = {
      language_boost: 'Chinese,Yue',
      pronunciation_dict: { tone: ['omg/oh my god'] },
      voice_modify: { pitch: -100, intensity: 100, timbre: 0, sound_effects: 'robotic' },
      aigc_watermark: true,
    }
    expect(readP3Metadata({ voice_setting, ...others, subtitle_enable: true, output_format: 'url' })).toEqual({
      voiceSetting: voice_setting,
      subtitles: true,
      outputFormat: 'url',
      others,
    })
  })

  it.each([
    [1.4, 1],
    [1.5, 2],
    [-11.6, -12],
    [-0.2, 0],
    [12, 12],
  ])('rounds the pitch %s, a float here, to the integer %s that upstream wants', (pitch, rounded) => {
    expect(readP3Metadata(voice({ pitch })).voiceSetting).toStrictEqual({ pitch: rounded })
  })

  it.each([
    [voice({ speed: 0.49 }), 'voice_setting.speed', 'decimal_below_min_value'],
    [voice({ speed: 2.01 }), 'voice_setting.speed', 'decimal_above_max_value'],
    [voice({ speed: '1' }), 'voice_setting.speed', 'invalid_type'],
    [voice({ vol: 0 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: -0 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: -1 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: 10.01 }), 'voice_setting.vol', 'decimal_above_max_value'],
    [voice({ pitch: 12.1 }), 'voice_setting.pitch', 'decimal_above_max_value'],
    [voice({ pitch: -13 }), 'voice_setting.pitch', 'decimal_below_min_value'],
    [voice({ emotion: 'bored' }), 'voice_setting.emotion', 'invalid_value'],
    [voice({ emotion: 7 }), 'voice_setting.emotion', 'invalid_type'],
    [voice({ text_normalization: 1 }), 'voice_setting.text_normalization', 'invalid_type'],
    [{ voice_setting: [] }, 'voice_setting', 'invalid_type'],
    [{ language_boost: 'Klingon' }, 'language_boost', 'invalid_value'],
    [{ subtitle_enable: 'yes' }, 'subtitle_enable', 'invalid_type'],
    [{ output_format: 'mp3' }, 'output_format', 'invalid_value'],
    [{ pronunciation_dict: { tone: 'a/b' } }, 'pronunciation_dict.tone', 'invalid_type'],
    [{ pronunciation_dict: { tone: ['a/b', 7] } }, 'pronunciation_dict.tone[1]', 'invalid_type'],
    [{ pronunciation_dict: { tone: ['ab'] } }, 'pronunciation_dict.tone[0]', 'invalid_value'],
    [{ pronunciation_dict: { tone: ['/b'] } }, 'pronunciation_dict.tone[0]', 'invalid_value'],
    [{ voice_modify: { pitch: 101 } }, 'voice_modify.pitch', 'integer_above_max_value'],
    [{ voice_modify: { timbre: 0.5 } }, 'voice_modify.timbre', 'invalid_type'],
    [{ voice_modify: { sound_effects: 'cave' } }, 'voice_modify.sound_effects', 'invalid_value'],
  ])('is refused in %j at metadata.%s', (metadata, param, code) => {
    expect(refusal(metadata)).toEqual({ param: `metadata.${param}`, code })
  })

  it.each([
    [{ model: 'speech-01-hd' }, 'model'],
    [{ text: 'Other' }, 'text'],
    [{ stream: false }, 'stream'],
    [{ stream_options: {} }, 'stream_options'],
    [{ audio_setting: { format: 'wav' } }, 'audio_setting'],
    [{ voice: 'nova' }, 'voice'],
    [{ timbre_weights: [] }, 'timbre_weights'],
    [voice({ voice_id: 'other' }), 'voice_setting.voice_id'],
    [{ subtitle_type: 'word' }, 'subtitle_type'],
    [{ authorization: 'Bearer x' }, 'authorization'],
    [{ GroupId: '1' }, 'GroupId'],
    [{ voice_modify: { gain: 1 } }, 'voice_modify.gain'],
  ])('never touches what the request itself says or the channel is: %j', (metadata, param) => {
    expect(refusal(metadata)).toEqual({ param: `metadata.${param}`, code: 'unknown_parameter' })
  })
})

interface Sent {
  readonly stream: boolean
  readonly voice_setting: Readonly<Record<string, unknown>>
  readonly audio_setting: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

const fields = (more: Partial<SpeechFields> = {}): SpeechFields => ({
  model: 'speech-02-hd',
  input: 'The kettle is on.',
  voice: 'alloy',
  ...more,
})

function sent(more: Partial<SpeechFields>, options: Readonly<Record<string, unknown>> = {}): Sent {
  const { body } = p3Request(fields(more), { upstreamModel: 'upstream-name', options })
  return JSON.parse(body.toString()) as Sent
}

describe('the request to P3', () => {
  it('is streamed, says everything once, and nothing that was not asked for', () => {
    expect(sent({ instructions: 'whisper' })).toEqual({
      model: 'upstream-name',
      text: 'The kettle is on.',
      stream: true,
      stream_options: { exclude_aggregated_audio: true },
      voice_setting: { voice_id: 'English_expressive_narrator' },
      audio_setting: { format: 'mp3' },
      output_format: 'hex',
    })
  })

  it.each([
    [{ subtitle_enable: true }, { subtitle_enable: true, output_format: 'hex' }],
    [{ output_format: 'url' }, { output_format: 'url' }],
    [
      { output_format: 'url', subtitle_enable: true },
      { output_format: 'url', subtitle_enable: true },
    ],
  ])('is not streamed for %j, which upstream cannot', (metadata, expected) => {
    const request = sent({ metadata })
    expect(request).toMatchObject({ stream: false, ...expected })
    expect(request).not.toHaveProperty('stream_options')
  })

  it('asks for each format in upstream’s own word, for samples where upstream cannot stream it, or for mp3', () => {
    const asked = Object.keys(AUDIO_FORMATS).map((response_format) => {
      const { body, format, sentAs, fallback } = p3Request(fields({ response_format }), {
        upstreamModel: 'm',
        options: {},
      })
      const { audio_setting } = JSON.parse(body.toString()) as Sent
      return [response_format, audio_setting, format, sentAs, fallback]
    })
    const samples = { format: 'pcm', sample_rate: 24_000, channel: 1 }
    expect(asked).toEqual([
      ['mp3', { format: 'mp3' }, 'mp3', 'mp3', undefined],
      ['wav', samples, 'pcm', 'wav', undefined],
      ['aac', { format: 'mp3' }, 'mp3', 'mp3', 'mp3'],
      ['flac', { format: 'flac' }, 'flac', 'flac', undefined],
      ['opus', { format: 'opus' }, 'opus', 'opus', undefined],
      ['pcm', samples, 'pcm', 'pcm', undefined],
    ])
  })

  it.each([
    [0.25, 0.5],
    [0.5, 0.5],
    [1.25, 1.25],
    [2, 2],
    [4, 2],
  ])('asks for the speed %s as %s', (speed, asked) => {
    expect(sent({ speed }).voice_setting['speed']).toBe(asked)
  })

  it('takes the speed of the metadata before that of the request, and none when neither has one', () => {
    expect(sent({ speed: 4, metadata: { voice_setting: { speed: 0.7 } } }).voice_setting['speed']).toBe(0.7)
    expect(sent({ speed: null }).voice_setting).not.toHaveProperty('speed')
  })

  it('carries the metadata where upstream expects it', () => {
    const metadata = { voice_setting: { vol: 2, pitch: 1.6, emotion: 'sad' }, language_boost: 'auto' }
    const { voice_setting, language_boost } = sent({ metadata })
    expect(voice_setting).toEqual({ voice_id: P3_VOICES.alloy, vol: 2, pitch: 2, emotion: 'sad' })
    expect(language_boost).toBe('auto')
  })

  it('is refused for a longer text than P3 takes, counted in characters', () => {
    expect(sent({ input: '😀'.repeat(10_000) })['text']).toHaveLength(20_000)
    expect(() => sent({ input: 'a'.repeat(10_001) })).toThrow('at most 10000 characters')
  })
})

describe('the voice at P3', () => {
  const voiceOf = (voice: SpeechFields['voice'], voices?: unknown): unknown =>
    sent({ voice }, voices === undefined ? {} : { voices }).voice_setting['voice_id']

  it('is another one for each of the six standard names', () => {
    const names = ['alloy', 'echo', 'fable', 'onyx', 'nova', 'shimmer']
    expect(new Set(names.map((name) => voiceOf(name))).size).toBe(6)
    for (const name of names) expect(voiceOf(name)).not.toBe(name)
  })

  it('is the channel’s where its table names one', () => {
    const table = { alloy: 'Calm_Woman', narrator: 'Wise_Woman' }
    expect(voiceOf('alloy', table)).toBe('Calm_Woman')
    expect(voiceOf('narrator', table)).toBe('Wise_Woman')
    expect(voiceOf('echo', table)).toBe(P3_VOICES.echo)
  })

  it.each(['Calm_Woman', 'constructor', '__proto__', 'Alloy'])('is %s where no table names it', (name) => {
    expect(voiceOf(name)).toBe(name)
  })

  it('is the id as it stands where an object gives one', () => {
    expect(voiceOf({ id: 'alloy' }, { alloy: 'Calm_Woman' })).toBe('alloy')
  })
})

const SUCCESS: P3Envelope = { code: 0, message: '', audio: '' }

function metadataOf(input = '你好'): { readonly metadata: P3ResponseMetadata; readonly log: RequestLog } {
  const call = newCall('/v1/audio/speech')
  const context: AttemptContext = {
    ...attemptOf(call),
    channelId: 'first',
    target: { poolKey: 'p', origin: 'http://127.0.0.1:1', pathPrefix: '', timeouts: GENEROUS_TIMEOUTS },
    credentials: 'key',
    callersKey: false,
    upstreamModel: 'm',
    modelMap: {},
    options: {},
    deadlineAtMs: 0,
  }
  return { metadata: new P3ResponseMetadata(input, context), log: call.log }
}

describe('what P3 says about a speech', () => {
  it('costs what P3 counts', () => {
    const { metadata } = metadataOf()
    metadata.read(SUCCESS)
    expect(metadata.reportedUsage).toBeUndefined()
    metadata.read({ ...SUCCESS, billedCharacters: 7, audioMs: 60_000 })
    expect(metadata.reportedUsage).toEqual({ units: { input_characters: 7 }, estimated: false })
    expect(metadata.countedUnits()).toEqual({ input_characters: 4 })
    expect(metadata.characters()).toBe(7)
    expect(metadata.usage()).toMatchObject({ output_tokens: 1000, input_characters: 7 })
  })

  it.each([
    ['你好', 4],
    ['你好 ok 😀', 9],
    ['wait<#1.50#>for it', 10],
    ['<#x', 3],
  ])('is counted by the same rules as long as P3 has said nothing (%s)', (input, characters) => {
    const { metadata } = metadataOf(input)
    expect(metadata.characters()).toBe(characters)
    expect(metadata.reportedUsage).toBeUndefined()
  })

  it('is known by its trace, also when it failed', () => {
    const { metadata, log } = metadataOf()
    const failed = { ...SUCCESS, code: 1002, traceId: 'trace-2' }
    metadata.read({ ...SUCCESS, traceId: 'trace-1' })
    expect(() => {
      metadata.read(failed)
    }).toThrow('busy')
    expect(log).toMatchObject({ upstreamRequestId: 'trace-2' })
    expect(metadata.reportedUsage).toBeUndefined()
  })

  it.each([
    ['https://files.example.com/a b?c=é', 'https://files.example.com/a%20b?c=%C3%A9'],
    ['http://files.example.com/s.json', 'http://files.example.com/s.json'],
    ['javascript:alert(1)', undefined],
    ['/files/s.json', undefined],
    [`https://files.example.com/${'x'.repeat(4096)}`, undefined],
    [undefined, undefined],
  ])('names the subtitles %s by the header %s', (subtitleFile, header) => {
    const { metadata } = metadataOf()
    metadata.read({ ...SUCCESS, ...(subtitleFile === undefined ? {} : { subtitleFile }) })
    expect(metadata.headers['x-subtitle-url']).toBe(header)
  })
})

const CHANNELS_KEY = { credentials: 'channel-canary-key', callersKey: false }
const CALLERS_KEY = { ...CHANNELS_KEY, callersKey: true }
const WORDS = 'upstream words of api.example.com for channel-canary-key'

interface Row {
  readonly code: number
  readonly kind: ErrorKind
  /** Whose fault; the channel's are tried on another one. */
  readonly fault: 'caller' | 'channel'
  readonly word?: string
  readonly param?: string
  readonly retryable?: false
  readonly retryAfterSeconds?: number
  /** The same with the caller's own key, where that makes a difference. */
  readonly own?: { readonly kind: ErrorKind; readonly word?: string }
}

const failed = { kind: 'upstream_failed', fault: 'channel' } as const
const account = { ...failed, retryable: false } as const
const invalid = { kind: 'invalid_request', fault: 'caller' } as const
const busy = { kind: 'rate_limited', fault: 'channel', retryAfterSeconds: 1, own: { kind: 'rate_limited' } } as const

/** The vendor's own table, code by code. */
const ROWS: readonly Row[] = [
  { code: 1000, ...failed },
  { code: 1001, kind: 'upstream_timeout', fault: 'channel' },
  { code: 1002, ...busy },
  { code: 1004, ...account, own: { kind: 'unauthorized' } },
  { code: 1008, ...account, own: { kind: 'rate_limited', word: 'insufficient_quota' } },
  { code: 1013, ...failed },
  { code: 1024, ...failed },
  { code: 1033, ...failed },
  { code: 1026, ...invalid, word: 'content_policy_violation', param: 'input' },
  { code: 1027, ...invalid, word: 'content_policy_violation' },
  { code: 1039, ...busy },
  { code: 1041, ...busy },
  { code: 1042, ...invalid, word: 'invalid_characters', param: 'input' },
  { code: 1043, ...invalid },
  { code: 1044, ...invalid },
  { code: 2013, ...invalid },
  { code: 2037, ...invalid },
  { code: 2038, ...account, own: { kind: 'forbidden_model' } },
  { code: 2039, ...invalid },
  { code: 2042, ...invalid, word: 'voice_not_permitted', param: 'voice' },
  { code: 2045, ...busy },
  { code: 2048, ...invalid },
  { code: 2049, ...account, own: { kind: 'unauthorized' } },
  { code: 2054, ...invalid, word: 'voice_not_found', param: 'voice' },
  { code: 2056, ...busy, retryAfterSeconds: 60 },
  { code: 20132, ...invalid, word: 'invalid_voice', param: 'voice' },
]

describe('a status code of P3', () => {
  it.each(ROWS)('$code is $kind, the fault of the $fault', (row) => {
    const { kind, message, details } = p3Failure({ code: row.code, message: WORDS }, CHANNELS_KEY)
    expect({ kind, ...details }).toEqual({
      kind: row.kind,
      cause: `status_code ${row.code}: upstream words of [host] for [key]`,
      attempt: { phase: 'answered', ...(row.fault === 'channel' ? { channelError: true } : {}) },
      ...(row.word === undefined ? {} : { code: row.word }),
      ...(row.param === undefined ? {} : { param: row.param }),
      ...(row.retryable === undefined ? {} : { retryable: row.retryable }),
      ...(row.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: row.retryAfterSeconds }),
    })
    // The upstream's words are for the caller only where the caller can do something about it.
    if (row.fault === 'caller') expect(message).toBe('upstream words of [host] for [key]')
    else expect(message).not.toContain('upstream words')
  })

  it.each(ROWS)('$code with the caller’s own key speaks of that key or says the same', (row) => {
    const own = p3Failure({ code: row.code, message: WORDS }, CALLERS_KEY)
    if (row.own === undefined) {
      expect(own).toEqual(p3Failure({ code: row.code, message: WORDS }, CHANNELS_KEY))
      return
    }
    expect(own.kind).toBe(row.own.kind)
    expect(own.details.code).toBe(row.own.word)
    expect(own.details.attempt).toEqual({ phase: 'answered' })
    expect(own.details.retryAfterSeconds).toBe(row.retryAfterSeconds)
  })

  it('has a row here for each documented one, and another one is P3’s own failure', () => {
    expect(Object.keys(P3_STATUS_CODES).map(Number)).toEqual(ROWS.map(({ code }) => code).sort((a, b) => a - b))
    expect(p3Failure({ code: 4242, message: WORDS }, CHANNELS_KEY)).toMatchObject({
      kind: 'upstream_failed',
      message: 'The upstream failed with status code 4242.',
      details: { attempt: { channelError: true } },
    })
  })

  it('says something to the caller even when P3 does not', () => {
    const { message } = p3Failure({ code: 2013, message: '' }, CHANNELS_KEY)
    expect(message).toBe('The upstream refused the request (2013).')
  })
})

describe('an answer of P3 with another HTTP status than 200', () => {
  async function refused(status: number, body: string, headers: Record<string, string> = {}): Promise<GatewayError> {
    const source = new ManualSource()
    const refusal = parseP3Error({ status, headers, body: source }, CHANNELS_KEY)
    source.data(body)
    source.end()
    return await refusal
  }
  const reported = (code: number, message = WORDS): string =>
    JSON.stringify({ data: null, base_resp: { status_code: code, status_msg: message } })

  it.each([
    [500, '<html>', 'upstream_failed'],
    [503, '', 'upstream_overloaded'],
    [401, '<html>', 'upstream_failed'],
    [429, '{}', 'rate_limited'],
    [400, 'null', 'invalid_request'],
    [404, '404 page not found', 'unknown_model'],
    [500, reported(1002), 'rate_limited'],
    [400, reported(1004), 'upstream_failed'],
    [400, reported(2038), 'upstream_failed'],
    [403, reported(2038), 'upstream_failed'],
    // What the status says is more precise here.
    [413, reported(2013), 'payload_too_large'],
    [422, reported(2013), 'unprocessable'],
    [500, reported(4242), 'upstream_failed'],
    [400, '{"base_resp":{"status_code":"1004"}}', 'invalid_request'],
  ])('%s with %s is %s', async (status, body, kind) => {
    expect(await refused(status, body)).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
  })

  it('shows the upstream’s words where the fault is the caller’s', async () => {
    expect((await refused(400, reported(2013))).message).toBe('upstream words of [host] for [key]')
    expect((await refused(400, reported(2054))).details).toMatchObject({ param: 'voice', code: 'voice_not_found' })
  })

  it('keeps the time to wait that the upstream names', async () => {
    const { details } = await refused(429, reported(1002), { 'retry-after': '7' })
    expect(details.retryAfterSeconds).toBe(7)
  })
})
