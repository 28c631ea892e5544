import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'
import { GRANT_NOT_FOUND, P2Rejection, violate, WRONG_ENGINE } from './p2-codes.js'
import type { P2Context } from './p2-context.js'
import { judgeFields } from './p2-fields.js'
import { CLONED_VOICE, P2_VOICES } from './p2-voices.table.js'

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
