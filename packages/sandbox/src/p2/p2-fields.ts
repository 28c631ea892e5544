import { isObject, type JsonObject } from '../server/json-value.js'
import { P2Rejection, violate } from './p2-codes.js'

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isBoolean: Check = (value) => typeof value === 'boolean'
const isInteger: Check = (value) => Number.isInteger(value)
const between =
  (minimum: number, maximum: number): Check =>
  (value) =>
    typeof value === 'number' && value >= minimum && value <= maximum
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)

const APP_FIELDS = { appid: isText, token: isText, cluster: isText }
const USER_FIELDS = { uid: isText }

const AUDIO_FIELDS = {
  voice_type: isText,
  encoding: oneOf('pcm', 'wav', 'mp3', 'ogg_opus'),
  rate: oneOf(8000, 16_000, 24_000),
  bitrate: (value: unknown) => isInteger(value) && between(1, 320)(value),
  speed_ratio: between(0.8, 2),
  loudness_ratio: between(0.5, 2),
  emotion: isText,
  enable_emotion: isBoolean,
  emotion_scale: between(1, 5),
  explicit_language: oneOf('crosslingual', 'zh', 'en', 'ja', 'es-mx', 'id', 'pt-br', 'de', 'fr'),
  context_language: oneOf('id', 'es', 'pt'),
}

const EXTRA_FIELDS = {
  disable_markdown_filter: isBoolean,
  enable_latex_tn: isBoolean,
  mute_cut_threshold: isText,
  mute_cut_remain_ms: isText,
  disable_emoji_filter: isBoolean,
  unsupported_char_ratio_thresh: between(0, 1),
  aigc_watermark: isBoolean,
  cache_config: (value: unknown) => isObject(value) && hasOnly(value, { text_type: oneOf(1), use_cache: isBoolean }),
}

const REQUEST_FIELDS = {
  reqid: isText,
  text: (value: unknown) => typeof value === 'string',
  text_type: oneOf('plain', 'ssml'),
  operation: oneOf('query', 'submit'),
  model: isText,
  silence_duration: (value: unknown) => isInteger(value) && between(0, 30_000)(value),
  enable_trailing_silence_audio: isBoolean,
  with_timestamp: oneOf(0, 1, '0', '1'),
  extra_param: isExtraParam,
}

type Fields = Readonly<Record<string, Check>>

const SECTIONS: readonly { name: string; fields: Fields; mandatory: readonly string[] }[] = [
  { name: 'app', fields: APP_FIELDS, mandatory: ['appid', 'token', 'cluster'] },
  { name: 'user', fields: USER_FIELDS, mandatory: ['uid'] },
  { name: 'audio', fields: AUDIO_FIELDS, mandatory: ['voice_type'] },
  { name: 'request', fields: REQUEST_FIELDS, mandatory: ['reqid', 'text', 'operation'] },
]

/**
 * Judges the names and the types of all fields. A field that is missing or that nobody knows is the relay's fault; a
 * value out of its range may come from a caller. Both throw P2Rejection 3001.
 */
export function judgeFields(json: JsonObject): void {
  const unknown = Object.keys(json).find((name) => !SECTIONS.some((section) => section.name === name))
  if (unknown !== undefined) violate(`unknown field ${unknown}`)
  for (const { name, fields, mandatory } of SECTIONS) {
    const section = json[name]
    if (!isObject(section)) violate(`${name} is no object`)
    for (const field of mandatory) if (!Object.hasOwn(section, field)) violate(`missing field ${name}.${field}`)
    for (const [field, value] of Object.entries(section)) {
      const check = Object.hasOwn(fields, field) ? fields[field] : undefined
      if (check === undefined) violate(`unknown field ${name}.${field}`)
      if (!check(value)) throw new P2Rejection(3001, `invalid ${name}.${field}: ${JSON.stringify(value)}`)
    }
  }
}

/** The documentation wants a string that holds JSON; an object is a known mistake of relays. */
function isExtraParam(value: unknown): boolean {
  if (typeof value !== 'string') return false
  try {
    const parsed: unknown = JSON.parse(value)
    return isObject(parsed) && hasOnly(parsed, EXTRA_FIELDS)
  } catch {
    return false
  }
}

function hasOnly(object: JsonObject, fields: Fields): boolean {
  return Object.entries(object).every(([name, value]) => Object.hasOwn(fields, name) && fields[name]?.(value) === true)
}
