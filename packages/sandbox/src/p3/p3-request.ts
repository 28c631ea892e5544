import type { Exchange } from '../server/exchange.js'
import { fieldOf, isObject, type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { P3Rejection, rejectParameter } from './p3-errors.js'
import { NEWER_EMOTIONS, REQUEST_FIELDS } from './p3-field-rules.js'
import { invisibleRatio, pauseFault } from './p3-text.js'

/** Who may call a simulator. */
export interface P3Access {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  /** Be one of the older hosts: the query must name this group, else 1004. Default: any group or none will do. */
  readonly groupId?: string
  /** Code of the refusal of a wrong key. Default 1004. */
  readonly badKeyCode?: 1004 | 2049
}

/** Judges key and group. Throws P3Rejection. */
export function judgeAccess(exchange: Exchange, options: P3Access): void {
  const key = /^Bearer (\S+)$/.exec(exchange.request.headers['authorization'] ?? '')?.[1]
  if (key === undefined) throw new P3Rejection(1004, 'no API key in the Authorization header')
  const accepted = options.apiKey === undefined ? key !== 'bad' : key === options.apiKey
  if (!accepted) throw new P3Rejection(options.badKeyCode ?? 1004)
  const group = exchange.request.query.get('GroupId')
  if (options.groupId !== undefined && group !== options.groupId) throw new P3Rejection(1004, 'GroupId is wrong')
}

/** Judges type and syntax of the body. Throws P3Rejection. */
export function judgeBody(exchange: Exchange, body: JsonObject | undefined): JsonObject {
  const type = exchange.request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) rejectParameter('Content-Type must be application/json')
  if (body === undefined) rejectParameter('the body is not a JSON object')
  return body
}

export function recordQueryViolations(exchange: Exchange): void {
  const { query, violations } = exchange.request
  for (const name of new Set(query.keys())) if (name !== 'GroupId') violations.push(`unknown query: ${name}`)
  if (query.getAll('GroupId').length > 1) violations.push('repeated query: GroupId')
}

/** System voices of the account that the simulator stands for. */
const NAMED_VOICES = ['English_expressive_narrator', 'audiobook_male_1', 'Calm_Woman', 'Wise_Woman']

/** Voices that exist in a `-jingpin` variant too. */
const PLAIN_VOICES = [
  'male-qn-jingying',
  'male-qn-qingse',
  'male-qn-badao',
  'male-qn-daxuesheng',
  'female-tianmei',
  'female-shaonv',
  'female-yujie',
  'female-chengshu',
]

const SYSTEM_VOICES: readonly string[] = [
  ...NAMED_VOICES,
  ...PLAIN_VOICES,
  ...PLAIN_VOICES.map((voice) => `${voice}-jingpin`),
]

/** Models that know every emotion. */
const NEWER_MODELS: readonly string[] = ['speech-2.6-hd', 'speech-2.6-turbo', 'speech-2.8-hd', 'speech-2.8-turbo']

const SPEECH_MODELS: readonly string[] = [
  'speech-2.5-hd-preview',
  'speech-2.5-turbo-preview',
  'speech-02-hd',
  'speech-02-turbo',
  'speech-01-hd',
  'speech-01-turbo',
  ...NEWER_MODELS,
]

export const P3_FORMATS = ['mp3', 'pcm', 'flac', 'wav', 'opus'] as const
const OUTPUT_FORMATS = ['hex', 'url'] as const
/** The text has fewer characters (code points) than this. */
const CHARACTER_LIMIT = 10_000
const INVISIBLE_LIMIT = 0.1

export type P3Format = (typeof P3_FORMATS)[number]

/** How strict a simulator is and what its account owns. */
export interface P3Rules {
  readonly formats: readonly P3Format[]
  /** Voices beside the system's own. */
  readonly voices: readonly string[]
  /** Takes an unknown `output_format` for `hex` instead of refusing it. */
  readonly lenientOutputFormat: boolean
}

/** A request that was found good. */
export interface P3Request {
  readonly model: string
  readonly text: string
  readonly stream: boolean
  /** Whether the last chunk repeats the audio; undefined when the caller did not say. */
  readonly aggregated: boolean | undefined
  readonly speed: number
  readonly format: P3Format
  /** In Hz; undefined when the caller did not say. */
  readonly sampleRate: number | undefined
  readonly channels: 1 | 2
  readonly outputFormat: 'hex' | 'url'
  readonly subtitles: 'none' | 'sentence' | 'word'
}

/** Judges a request as strictly as the upstream. Throws P3Rejection. */
export function judgeP3Request(body: JsonObject, rules: P3Rules): P3Request {
  REQUEST_FIELDS(body, '')
  const model = textOf(body['model'])
  if (!SPEECH_MODELS.includes(model)) rejectParameter(`model ${model === '' ? 'is required' : `${model} is unknown`}`)
  const text = judgeText(body['text'])
  const stream = body['stream'] === true
  const voice = fieldOf(body, 'voice_setting')
  const audio = fieldOf(body, 'audio_setting')
  judgeVoices(body, voice, rules.voices)
  judgeEmotion(textOf(fieldOf(voice, 'emotion')), model)
  const format = judgeFormat(audio, stream, rules.formats)
  if (stream && body['subtitle_enable'] === true) rejectParameter('subtitle_enable needs stream=false')
  const exclude = fieldOf(body['stream_options'], 'exclude_aggregated_audio')
  return {
    model,
    text,
    stream,
    aggregated: typeof exclude === 'boolean' ? !exclude : undefined,
    speed: numberOf(fieldOf(voice, 'speed')) ?? 1,
    format,
    sampleRate: numberOf(fieldOf(audio, 'sample_rate')),
    channels: fieldOf(audio, 'channel') === 2 ? 2 : 1,
    outputFormat: judgeOutputFormat(body['output_format'], stream, rules.lenientOutputFormat),
    subtitles: body['subtitle_enable'] !== true ? 'none' : body['subtitle_type'] === 'word' ? 'word' : 'sentence',
  }
}

function judgeText(value: unknown): string {
  const text = textOf(value)
  if (text.trim() === '') rejectParameter('text is empty')
  const characters = Array.from(text).length
  if (characters >= CHARACTER_LIMIT) {
    rejectParameter(`text must have fewer than ${CHARACTER_LIMIT} characters, got ${characters}`)
  }
  const fault = pauseFault(text)
  if (fault !== undefined) rejectParameter(fault)
  if (invisibleRatio(text) > INVISIBLE_LIMIT) throw new P3Rejection(1042)
  return text
}

function judgeVoices(body: JsonObject, voice: unknown, ownVoices: readonly string[]): void {
  const timbres = objectsOf(body['timbre_weights'] ?? body['timber_weights'])
  const voiceId = textOf(fieldOf(voice, 'voice_id'))
  if (voiceId === '' && timbres.length === 0) rejectParameter('voice_setting.voice_id is required')
  const wanted = timbres.map((timbre) => textOf(fieldOf(timbre, 'voice_id')))
  if (voiceId !== '') wanted.push(voiceId)
  const unknown = wanted.find((id) => !SYSTEM_VOICES.includes(id) && !ownVoices.includes(id))
  if (unknown !== undefined) throw new P3Rejection(2054, `voice_id: ${unknown}`)
}

function judgeEmotion(emotion: string, model: string): void {
  if (!NEWER_EMOTIONS.includes(emotion) || NEWER_MODELS.includes(model)) return
  rejectParameter(`voice_setting.emotion ${emotion} is not supported by ${model}`)
}

function judgeFormat(audio: unknown, stream: boolean, formats: readonly P3Format[]): P3Format {
  const wanted = fieldOf(audio, 'format') ?? 'mp3'
  const format = formats.find((name) => name === wanted)
  if (format === undefined) rejectParameter(`audio_setting.format must be one of ${formats.join(', ')}`)
  if (format === 'wav' && stream) rejectParameter('audio_setting.format wav needs stream=false')
  if (!isObject(audio)) return format
  if (format !== 'mp3' && audio['bitrate'] !== undefined) rejectParameter('audio_setting.bitrate is for mp3 only')
  if (audio['force_cbr'] === true && !(stream && format === 'mp3')) {
    rejectParameter('audio_setting.force_cbr is for streamed mp3 only')
  }
  return format
}

function judgeOutputFormat(value: unknown, stream: boolean, lenient: boolean): 'hex' | 'url' {
  const wanted = value ?? 'hex'
  const known = OUTPUT_FORMATS.find((name) => name === wanted)
  if (known === undefined && !lenient) rejectParameter(`output_format must be one of ${OUTPUT_FORMATS.join(', ')}`)
  if (known === 'url' && stream) rejectParameter('output_format url needs stream=false')
  return known ?? 'hex'
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
