import { integerAmong, type MetadataShape, readMetadata } from '../../core/dto.js'
import {
  anyOf,
  decimal,
  type FieldRule,
  flag,
  integer,
  isRecord,
  oneOf,
  record,
  text,
} from '../../core/validation-rules.js'

/** What a caller's `metadata` adds to the upstream's request, checked. Never credentials, text, voice or format. */
export interface P2Overlay {
  readonly audio: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>>
}

export interface P2MetadataTerms {
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
  extra_param: anyOf('an object or the JSON text of one', record(), jsonObject()),
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
  { pcm = false }: P2MetadataTerms = {},
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
  const mustBeObject = record()
  return (value, path) => mustBeObject(objectOrNothing(value), path)
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
