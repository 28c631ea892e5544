import { GatewayError } from '../../core/errors.js'
import {
  anyOf,
  anyRecord,
  decimal,
  type FieldRule,
  flag,
  integer,
  isRecord,
  oneOf,
  text,
  integerAmong,
  type MetadataShape,
  readMetadata,
} from '../../core/validation-rules.js'
import { type AudioFormat, requestedFormat, upstreamVoice, type VoiceTable } from '../../dialects/speech-formats.js'

export interface P2Format {
  /** What the upstream is asked for; it does not stream wav. */
  readonly encoding: 'mp3' | 'ogg_opus' | 'pcm'
  /** What its bytes are, in the caller's words. */
  readonly format: AudioFormat
  readonly sentAs: AudioFormat
  readonly fallback?: AudioFormat
}

const MP3 = { encoding: 'mp3', format: 'mp3', sentAs: 'mp3' } as const

const P2_FORMATS = {
  mp3: MP3,
  opus: { encoding: 'ogg_opus', format: 'opus', sentAs: 'opus' },
  aac: { ...MP3, fallback: 'mp3' },
  flac: { ...MP3, fallback: 'mp3' },
  wav: { encoding: 'pcm', format: 'pcm', sentAs: 'wav' },
  pcm: { encoding: 'pcm', format: 'pcm', sentAs: 'pcm' },
} as const satisfies Readonly<Record<AudioFormat, P2Format>>

/** Formats that P2 speaks itself; another one becomes mp3. */
export const P2_FORMAT_NAMES = Object.entries<P2Format>(P2_FORMATS)
  .filter(([, { fallback }]) => fallback === undefined)
  .map(([name]) => name)

/** How a requested `response_format` is spoken; the default when none was asked for. */
export const p2Format = (requested: string | null | undefined): P2Format => P2_FORMATS[requestedFormat(requested)]

/** The two parts of a P2 key (specification: Authentication). */
export interface P2Key {
  readonly appId: string
  readonly accessToken: string
}

const P2_KEY = /^([\x21-\x7b\x7d\x7e]+)\|([\x21-\x7b\x7d\x7e]+)$/

/** Parses `<APP_ID>|<ACCESS_TOKEN>`: exactly two non-empty printable parts, otherwise `key_malformed` (401). */
export function parseP2Key(key: string): P2Key {
  const [, appId, accessToken] = P2_KEY.exec(key) ?? []
  if (appId === undefined || accessToken === undefined) {
    throw new GatewayError('key_malformed', 'The API key for this model must have the form <APP_ID>|<ACCESS_TOKEN>.')
  }
  return { appId, accessToken }
}

/** What a caller's `metadata` adds to the upstream's request, checked. Never credentials, text, voice or format. */
export interface P2Overlay {
  readonly audio: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>>
}

interface P2MetadataOptions {
  /** The caller gets pcm or wav, which is always 24 kHz. */
  readonly pcm?: boolean
}

const EXPLICIT_LANGUAGES = ['crosslingual', 'zh', 'en', 'ja', 'es-mx', 'id', 'pt-br', 'de', 'fr']
const CONTEXT_LANGUAGES = ['id', 'es', 'pt']
const RATES_HZ = [8000, 16000, 24000]
const PCM_RATES_HZ = [24000]
const name = text({ allowBlank: false, maximumCharacters: 64 })

const audioShape = (ratesHz: readonly number[]): MetadataShape => ({
  rate: integerAmong(ratesHz),
  // In kb/s; the protocol gives no range, so that of the one format it is for.
  bitrate: integer({ minimum: 8, maximum: 320 }),
  speed_ratio: decimal({ minimum: 0.1, maximum: 2 }),
  loudness_ratio: decimal({ minimum: 0.5, maximum: 2 }),
  emotion: name,
  enable_emotion: flag,
  emotion_scale: decimal({ minimum: 1, maximum: 5 }),
  explicit_language: oneOf(EXPLICIT_LANGUAGES),
  context_language: oneOf(CONTEXT_LANGUAGES),
})

const REQUEST_SHAPE: MetadataShape = {
  text_type: oneOf(['ssml', 'plain']),
  // In milliseconds.
  silence_duration: integer({ minimum: 0, maximum: 30_000 }),
  enable_trailing_silence_audio: flag,
  with_timestamp: anyOf("0, 1, '0' or '1'", integerAmong([0, 1]), oneOf(['0', '1'])),
  extra_param: anyOf('an object or the JSON text of one', anyRecord, jsonObject()),
}

const EXTRA_SHAPE: MetadataShape = {
  disable_markdown_filter: flag,
  enable_latex_tn: flag,
  mute_cut_threshold: name,
  mute_cut_remain_ms: name,
  disable_emoji_filter: flag,
  unsupported_char_ratio_thresh: decimal({ minimum: 0, maximum: 1 }),
  aigc_watermark: flag,
  cache_config: { text_type: integerAmong([1]), use_cache: flag },
}

const SHAPE: MetadataShape = { audio: audioShape(RATES_HZ), request: REQUEST_SHAPE }
const PCM_SHAPE: MetadataShape = { audio: audioShape(PCM_RATES_HZ), request: REQUEST_SHAPE }

/**
 * Checks `metadata`, nested as the upstream nests its request: `{audio: {…}, request: {…}}`. Throws `invalid_request`
 * with `param` (`metadata.audio.rate`) for any other name and for a value out of its range.
 */
export function readP2Metadata(
  metadata: Record<string, unknown> | null | undefined,
  { pcm = false }: P2MetadataOptions = {},
): P2Overlay {
  const { audio, request } = readMetadata(metadata, pcm ? PCM_SHAPE : SHAPE)
  return { audio: objectOf(audio), request: withExtraText(objectOf(request)) }
}

/** The upstream takes `extra_param` as JSON text only. */
function withExtraText(request: Record<string, unknown>): Record<string, unknown> {
  const { extra_param: extra } = request
  if (extra === undefined) return request
  const read = readMetadata(objectOf(extra), EXTRA_SHAPE, 'metadata.request.extra_param')
  return { ...request, extra_param: JSON.stringify(read) }
}

/** A rule for the JSON text of an object. */
function jsonObject(): FieldRule {
  return (value, path) => anyRecord(objectOrNothing(value), path)
}

const objectOf = (value: unknown): Record<string, unknown> => objectOrNothing(value) ?? {}

function objectOrNothing(value: unknown): Record<string, unknown> | undefined {
  if (isRecord(value)) return value
  if (typeof value !== 'string') return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return isRecord(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** The six standard voices and the presets of the same character; a channel's option `voices` is laid over them. */
export const P2_VOICES: VoiceTable = {
  alloy: 'zh_male_M392_conversation_wvae_bigtts',
  echo: 'zh_male_wenhao_mars_bigtts',
  fable: 'zh_female_tianmei_mars_bigtts',
  onyx: 'zh_male_zhibei_mars_bigtts',
  nova: 'zh_female_shuangkuaisisi_mars_bigtts',
  shimmer: 'zh_female_cancan_mars_bigtts',
}

/** P2's name of a voice. */
export const p2Voice = (voice: string | { readonly id: string }, ofChannel?: VoiceTable): string =>
  upstreamVoice(voice, P2_VOICES, ofChannel)

export interface P2RequestParts {
  readonly appId: string
  readonly accessToken: string
  readonly cluster: string
  /** Shown in the upstream's own logs. */
  readonly userId: string
  readonly voiceType: string
  readonly encoding: 'pcm' | 'mp3' | 'ogg_opus'
  /** 1 = as the voice speaks. */
  readonly speedRatio: number
  /** Of this synthesis alone: the upstream refuses one it has seen. */
  readonly reqid: string
  /** At most 1,024 bytes of UTF-8. */
  readonly text: string
  readonly model?: string | undefined
  readonly overlay: P2Overlay
}

const RATE_HZ = 24_000
/** Half a surrogate pair has no UTF-8; as a JSON escape it would reach the upstream and break there. */
const LONE_SURROGATE = /\p{Surrogate}/gu

/** The JSON of one streaming synthesis. The overlay lies over defaults and under everything else. */
export function p2Request(parts: P2RequestParts): Buffer {
  const { appId, accessToken, cluster, userId, voiceType, encoding, speedRatio, reqid, text, model, overlay } = parts
  return Buffer.from(
    JSON.stringify({
      app: { appid: appId, token: accessToken, cluster },
      user: { uid: userId },
      audio: { rate: RATE_HZ, ...overlay.audio, speed_ratio: speedRatio, voice_type: voiceType, encoding },
      request: {
        ...overlay.request,
        reqid,
        text: text.replace(LONE_SURROGATE, '\ufffd'),
        operation: 'submit',
        model,
      },
    }),
  )
}
