import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import type { ServedLedger } from '../server/served-usage.js'
import { GRANT_NOT_FOUND, P2Rejection, violate, WRONG_ENGINE } from './p2-errors.js'

/** How strict one P2 simulator is, and what it remembers between sessions. */
export interface P2Context {
  /** The only accepted ones; undefined accepts every app id, and every token but `bad`. */
  readonly appId: string | undefined
  readonly accessToken: string | undefined
  readonly wrongToken: 'handshake' | 'frame'
  /** Voices known beyond the usual ones. */
  readonly voices: readonly string[]
  readonly wavAccepted: boolean
  readonly acknowledge: boolean
  readonly paceMs: number
  readonly gapMs: number
  readonly closeAfterMs: number
  readonly served: ServedLedger
  readonly usedRequestIds: Set<string>
}

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
 * Judges the names and the types of all fields. A missing or unknown field is the relay's fault; a
 * value out of its range may come from a caller. Both throw P2Rejection 3001.
 */
function judgeFields(json: JsonObject): void {
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

/** The presets relays use for the six standard voices, and listed alternatives with the same character. */
const P2_VOICES: readonly string[] = [
  'zh_male_M392_conversation_wvae_bigtts',
  'zh_male_wenhao_mars_bigtts',
  'zh_female_tianmei_mars_bigtts',
  'zh_male_zhibei_mars_bigtts',
  'zh_female_shuangkuaisisi_mars_bigtts',
  'zh_female_cancan_mars_bigtts',
  'zh_male_xudong_conversation_wvae_bigtts',
  'zh_male_wenrouxiaoge_mars_bigtts',
  'zh_male_yuanboxiaoshu_moon_bigtts',
  'zh_female_tianmeitaozi_mars_bigtts',
  'zh_female_tianmeixiaoyuan_moon_bigtts',
  'zh_female_zhixingnvsheng_mars_bigtts',
  'zh_male_wennuanahu_moon_bigtts',
  'zh_male_yangguangqingnian_moon_bigtts',
  'zh_male_qingshuangnanda_mars_bigtts',
  'zh_female_shuangkuaisisi_moon_bigtts',
  'zh_female_shuangkuaisisi_emo_v2_mars_bigtts',
]

/** A cloned voice, which lives in a cluster of its own. */
const CLONED_VOICE = /^S_\w+$/

const MAXIMUM_TEXT_BYTES = 1024
/** Request ids remembered; a sandbox may run for weeks. */
const REMEMBERED_REQUEST_IDS = 100_000
const STANDARD_RATE = 24_000
const SSML = /^\s*<speak[\s>][\s\S]*<\/speak>\s*$/
const AUDIBLE = /[\p{L}\p{N}]/u

export type P2Encoding = 'pcm' | 'wav' | 'mp3' | 'ogg_opus'

/** A request that was found good. */
export interface P2Request {
  readonly reqid: string
  readonly model: string
  readonly operation: 'query' | 'submit'
  /** What is spoken: the text, without its tags when it is SSML. */
  readonly text: string
  readonly encoding: P2Encoding
  /** Hz. */
  readonly rate: number
  readonly speed: number
  readonly wantsTimestamps: boolean
}

/** Judges a request as strictly as the upstream. Throws P2Rejection. */
export function judgeRequest(json: JsonObject, context: P2Context, transport: 'socket' | 'http'): P2Request {
  judgeFields(json)
  if (context.appId !== undefined && fieldOf(json['app'], 'appid') !== context.appId) {
    throw new P2Rejection(3001, GRANT_NOT_FOUND)
  }
  const operation = fieldOf(json['request'], 'operation') === 'query' ? 'query' : 'submit'
  if (transport === 'http' && operation === 'submit') violate('operation submit needs a WebSocket')
  const reqid = textOf(fieldOf(json['request'], 'reqid'))
  judgeRequestId(reqid, context.usedRequestIds)
  judgeVoice(json, context)
  const text = judgeText(json)
  const model = textOf(fieldOf(json['request'], 'model'))
  return {
    reqid,
    model,
    operation,
    text,
    ...judgeAudio(json, operation, context),
    wantsTimestamps: wantsTimestamps(json),
  }
}

function judgeRequestId(reqid: string, used: Set<string>): void {
  if (used.has(reqid)) throw new P2Rejection(3006, undefined, true)
  used.add(reqid)
  const [oldest] = used
  if (used.size > REMEMBERED_REQUEST_IDS && oldest !== undefined) used.delete(oldest)
}

function judgeVoice(json: JsonObject, context: P2Context): void {
  const voice = textOf(fieldOf(json['audio'], 'voice_type'))
  const isCloned = CLONED_VOICE.test(voice)
  if (!isCloned && !P2_VOICES.includes(voice) && !context.voices.includes(voice)) throw new P2Rejection(3050)
  const cluster = isCloned ? 'volcano_icl' : 'volcano_tts'
  if (fieldOf(json['app'], 'cluster') !== cluster) throw new P2Rejection(3031, WRONG_ENGINE)
}

function judgeText(json: JsonObject): string {
  const text = textOf(fieldOf(json['request'], 'text'))
  if (Buffer.byteLength(text) > MAXIMUM_TEXT_BYTES) throw new P2Rejection(3010)
  const isSsml = fieldOf(json['request'], 'text_type') === 'ssml'
  if (isSsml && !SSML.test(text)) throw new P2Rejection(3011)
  const spoken = isSsml ? text.replace(/<[^>]*>/g, '') : text
  if (!AUDIBLE.test(spoken)) throw new P2Rejection(3011)
  return spoken
}

function judgeAudio(
  json: JsonObject,
  operation: P2Request['operation'],
  context: P2Context,
): Pick<P2Request, 'encoding' | 'rate' | 'speed'> {
  const audio = json['audio']
  // The values were judged before: anything else is absent.
  const encoding = (fieldOf(audio, 'encoding') ?? 'pcm') as P2Encoding
  const rate = (fieldOf(audio, 'rate') ?? STANDARD_RATE) as number
  const speed = (fieldOf(audio, 'speed_ratio') ?? 1) as number
  if (encoding === 'wav' && operation === 'submit' && !context.wavAccepted) violate('encoding wav cannot be streamed')
  if (rate !== STANDARD_RATE && (encoding === 'mp3' || encoding === 'ogg_opus')) {
    violate(`the simulator speaks ${encoding} at ${STANDARD_RATE} Hz only`)
  }
  return { encoding, rate, speed }
}

/** Speech from the cache comes without them. */
function wantsTimestamps(json: JsonObject): boolean {
  const wish = fieldOf(json['request'], 'with_timestamp')
  const usesCache = textOf(fieldOf(json['request'], 'extra_param')).includes('"cache_config"')
  return (wish === 1 || wish === '1') && !usesCache
}
