import { isBase64, isObject, type JsonObject, parseJsonObject } from '../server/json-value.js'
import { OpenAiRejection, reject } from '../server/openai-errors.js'
import { audioFacts, type AudioFacts } from '../transcription/audio-metadata.js'
import {
  judgeGranularities,
  judgePartNames,
  judgeTemperature,
  languageName,
  type TranscriptionForm,
} from '../transcription/transcription-form.js'
import type { P1Context } from './p1-context.js'
import { type P1Family, transcriptionFamily } from './p1-models.js'

const MAX_SPEAKERS = 4
/** Diarization of anything longer needs a chunking strategy, in seconds. */
const DIARIZE_UNCHUNKED_SECONDS = 30
const VAD_KEYS = ['type', 'prefix_padding_ms', 'silence_duration_ms', 'threshold'] as const

/** Judges `include[]`; returns whether log probabilities were asked for. */
function judgeInclude(form: TranscriptionForm, family: P1Family, format: string): boolean {
  const values = form.texts('include[]')
  const wrong = values.find((value) => value !== 'logprobs')
  if (wrong !== undefined)
    reject(`Invalid value: '${wrong}'. Supported values are: 'logprobs'.`, 'include', 'invalid_value')
  if (values.length === 0) return false
  if (family !== 'transcribe') {
    reject("'include' with 'logprobs' is not supported with this model.", 'include', 'unsupported_value')
  }
  if (format !== 'json') reject("'include' needs response_format 'json'.", 'include', 'unsupported_value')
  return true
}

/** Judges `known_speaker_names[]` and their reference clips; returns the names. */
function judgeSpeakers(form: TranscriptionForm): readonly string[] {
  const names = form.texts('known_speaker_names[]')
  const references = form.texts('known_speaker_references[]')
  if (names.length > MAX_SPEAKERS) {
    reject(`At most ${MAX_SPEAKERS} known speakers are supported.`, 'known_speaker_names', 'invalid_value')
  }
  if (names.length !== references.length) {
    const message = "'known_speaker_names' and 'known_speaker_references' must have the same length."
    reject(message, 'known_speaker_references', 'invalid_value')
  }
  if (!references.every(isAudioUrl)) {
    reject("'known_speaker_references' must be data URLs.", 'known_speaker_references', 'invalid_value')
  }
  return names
}

function isAudioUrl(text: string): boolean {
  const [prefix = ''] = /^data:audio\/[\w.+-]+;base64,/.exec(text) ?? []
  return prefix !== '' && isBase64(text.slice(prefix.length))
}

/** Clients send the strategy as `auto`, as a JSON object, or as one part per key; all are accepted. */
function judgeChunking(form: TranscriptionForm, family: P1Family, seconds: number): void {
  const whole = form.text('chunking_strategy')
  const keyed = keyedStrategy(form)
  if (whole === undefined && keyed === undefined) {
    if (family !== 'diarize' || seconds <= DIARIZE_UNCHUNKED_SECONDS) return
    reject('chunking_strategy is required for diarization models', 'chunking_strategy', 'invalid_value')
  }
  if (whole === 'auto') return
  const strategy = keyed ?? parseJsonObject(Buffer.from(whole ?? ''))
  if (!isObject(strategy) || strategy['type'] !== 'server_vad') {
    const supported = "Supported values are: 'auto' or an object of type 'server_vad'."
    reject(`Invalid value for 'chunking_strategy'. ${supported}`, 'chunking_strategy', 'invalid_value')
  }
  const unknown = Object.keys(strategy).find((key) => !VAD_KEYS.some((known) => known === key))
  if (unknown !== undefined) {
    const path = `chunking_strategy.${unknown}`
    reject(`Unknown parameter: '${path}'.`, path, 'unknown_parameter')
  }
}

function keyedStrategy(form: TranscriptionForm): JsonObject | undefined {
  const entries = form.parts.flatMap((part) => {
    const key = /^chunking_strategy\[(\w+)\]$/.exec(part.name)?.[1]
    return key === undefined ? [] : [[key, part.value] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Which answers each family of transcription models gives (section 3.2 of the audio notes), and its time limits. */
const TRANSCRIPTION_FAMILIES: Readonly<
  Partial<Record<P1Family, { formats: readonly string[]; streams: boolean; maxSeconds: number }>>
> = {
  whisper: {
    formats: ['json', 'text', 'srt', 'vtt', 'verbose_json'],
    streams: false,
    maxSeconds: Number.POSITIVE_INFINITY,
  },
  transcribe: { formats: ['json', 'text'], streams: true, maxSeconds: 1500 },
  diarize: { formats: ['json', 'text', 'diarized_json'], streams: true, maxSeconds: 1400 },
  'gpt-transcribe': { formats: ['json'], streams: true, maxSeconds: 1500 },
}

const COMMON_PARTS = ['file', 'model', 'language', 'prompt', 'response_format', 'temperature', 'stream'] as const

/** Part names each family knows; whisper knows the newer ones too and ignores or judges them. */
const TRANSCRIPTION_PARTS: Readonly<Partial<Record<P1Family, readonly string[]>>> = {
  whisper: [...COMMON_PARTS, 'include[]', 'timestamp_granularities[]', 'chunking_strategy'],
  transcribe: [...COMMON_PARTS, 'include[]', 'timestamp_granularities[]', 'chunking_strategy'],
  diarize: [
    ...COMMON_PARTS,
    'include[]',
    'timestamp_granularities[]',
    'chunking_strategy',
    'known_speaker_names[]',
    'known_speaker_references[]',
  ],
  'gpt-transcribe': [...COMMON_PARTS, 'languages[]', 'keywords[]', 'chunking_strategy'],
}

const TRANSLATION_PARTS = ['file', 'model', 'prompt', 'response_format', 'temperature'] as const

const EXTENSIONS = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'] as const
const MIN_SECONDS = 0.1

/** Judges that there is a file part at all, before the model is looked at. Throws OpenAiRejection. */
function judgeFilePart(form: TranscriptionForm): void {
  const { file } = form
  if (file === undefined)
    reject('1 validation error for Request\nbody -> file\n  field required (type=value_error.missing)')
  if (file.filename !== undefined) return
  const reason = `"Value error, Expected UploadFile, received: <class 'str'>"`
  reject(`[{'type': 'value_error', 'loc': ('body', 'file'), 'msg': ${reason}, 'input': '…', 'ctx': {'error': {}}}]`)
}

/** Judges name, signature and length of the file as the model's family does (section 5 of the audio notes). */
function judgeFile(form: TranscriptionForm, family: P1Family): AudioFacts {
  const { file } = form
  const extension = file?.filename?.split('.').at(-1)?.toLowerCase() ?? ''
  if (file === undefined || !EXTENSIONS.some((name) => name === extension)) {
    reject(`Invalid file format. Supported formats: [${EXTENSIONS.map((name) => `'${name}'`).join(', ')}]`)
  }
  const facts = audioFacts(file)
  if (facts.container === undefined) undecodable(family)
  judgeLength(facts.seconds, family)
  return facts
}

function undecodable(family: P1Family): never {
  if (family === 'whisper') reject('The audio file could not be decoded or its format is not supported.')
  reject('Audio file might be corrupted or unsupported', 'file', 'invalid_value')
}

function judgeLength(seconds: number, family: P1Family): void {
  const maxSeconds = TRANSCRIPTION_FAMILIES[family]?.maxSeconds ?? Number.POSITIVE_INFINITY
  if (seconds < MIN_SECONDS && family === 'whisper') {
    reject('Audio file is too short. Minimum audio length is 0.1 seconds.', 'file', 'audio_too_short')
  }
  if (seconds < MIN_SECONDS) {
    const bound = `shorter than ${MIN_SECONDS} seconds which is the minimum for this model`
    reject(`audio duration ${decimal(seconds)} seconds is ${bound}`, null, 'invalid_value')
  }
  if (seconds > maxSeconds) {
    const bound = `longer than ${maxSeconds} seconds which is the maximum for this model`
    reject(`audio duration ${decimal(seconds)} seconds is ${bound}`, null, 'invalid_value')
  }
}

function decimal(seconds: number): string {
  return Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds)
}

/** The refusal of a language code carries usage beside the error. */
function badLanguage(code: string): OpenAiRejection {
  const message = `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`
  return new OpenAiRejection(400, message, {
    param: 'language',
    code: 'invalid_language_format',
    siblings: { usage: { type: 'duration', seconds: 0 } },
  })
}

/** A transcription or translation request that was found good. */
export interface TranscriptionRequest {
  readonly model: string
  readonly task: 'transcribe' | 'translate'
  readonly family: P1Family
  readonly format: string
  /** Lower-case English name. */
  readonly language: string
  readonly languageCodes: readonly string[]
  readonly granularities: readonly string[]
  readonly stream: boolean
  readonly logprobs: boolean
  readonly speakers: readonly string[]
  readonly prompt: string
  /** What a model that is billed by token takes for a minute of audio. */
  readonly audioTokensPerMinute: number
  readonly facts: AudioFacts
}

/** Judges the form as strictly as the upstream. Throws OpenAiRejection. */
export function judgeTranscription(
  form: TranscriptionForm,
  task: 'transcribe' | 'translate',
  { audioTokensPerMinute }: Pick<P1Context, 'audioTokensPerMinute'>,
): TranscriptionRequest {
  const model = form.text('model') ?? ''
  if (model === '') reject('you must provide a model parameter')
  judgeFilePart(form)
  const family = transcriptionFamily(model)
  if (task === 'translate' && family !== 'whisper') {
    reject(`Model '${model}' does not support translation.`, 'model', 'unsupported_value')
  }
  judgePartNames(form, task === 'translate' ? TRANSLATION_PARTS : (TRANSCRIPTION_PARTS[family] ?? []))
  const format = judgeFormat(form, family, model)
  judgeTemperature(form)
  const code = form.text('language')
  const language = code === undefined ? 'english' : languageName(code)
  if (language === undefined) throw badLanguage(code ?? '')
  const languageCodes = judgeLanguageList(form)
  const granularities = judgeGranularities(form, format)
  const stream = judgeStream(form, family)
  const logprobs = judgeInclude(form, family, format)
  const speakers = judgeSpeakers(form)
  if (family === 'diarize' && form.text('prompt') !== undefined) {
    reject("'prompt' is not supported with this model.", 'prompt', 'unsupported_parameter')
  }
  const facts = judgeFile(form, family)
  judgeChunking(form, family, facts.seconds)
  const prompt = form.text('prompt') ?? ''
  const wishes = { language, languageCodes, granularities, stream, logprobs, speakers, prompt }
  return { task, model, family, format, ...wishes, audioTokensPerMinute, facts }
}

function judgeFormat(form: TranscriptionForm, family: P1Family, model: string): string {
  const format = form.text('response_format') ?? 'json'
  const known = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json']
  if (!known.includes(format)) {
    const list = known.map((name) => `'${name}'`).join(', ')
    reject(`Invalid value: '${format}'. Supported values are: ${list}.`, 'response_format', 'invalid_value')
  }
  const formats = TRANSCRIPTION_FAMILIES[family]?.formats ?? []
  if (formats.includes(format)) return format
  const advice = `Use ${formats.map((name) => `'${name}'`).join(' or ')} instead.`
  const message = `response_format '${format}' is not compatible with model '${model}'. ${advice}`
  reject(message, 'response_format', 'unsupported_value')
}

function judgeLanguageList(form: TranscriptionForm): readonly string[] {
  const codes = form.texts('languages[]')
  const wrong = codes.find((code) => languageName(code) === undefined)
  if (wrong !== undefined) throw badLanguage(wrong)
  return codes
}

/** Whisper ignores the field with any value. */
function judgeStream(form: TranscriptionForm, family: P1Family): boolean {
  const text = form.text('stream')
  if (text === undefined || family === 'whisper') return false
  if (text !== 'true' && text !== 'false') {
    reject("Invalid type for 'stream': expected a boolean, but got a string instead.", 'stream', 'invalid_type')
  }
  return text === 'true'
}
