import { reject } from '../server/openai-rejection.js'
import type { AudioFacts } from '../transcription/audio-metadata.js'
import { languageName } from '../transcription/languages.js'
import {
  judgeGranularities,
  judgePartNames,
  judgeTemperature,
  type TranscriptionForm,
} from '../transcription/transcription-form.js'
import { judgeChunking, judgeInclude, judgeSpeakers } from './class-g-rules.js'
import { badLanguage, judgeFile, judgeFilePart } from './file-rules.js'
import { TRANSCRIPTION_FAMILIES, TRANSCRIPTION_PARTS, TRANSLATION_PARTS } from './model-formats.js'
import type { P1Context } from './p1-context.js'
import { type P1Family, transcriptionFamily } from './p1-models.js'

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

/** Whisper ignores the field, whatever it says. */
function judgeStream(form: TranscriptionForm, family: P1Family): boolean {
  const text = form.text('stream')
  if (text === undefined || family === 'whisper') return false
  if (text !== 'true' && text !== 'false') {
    reject("Invalid type for 'stream': expected a boolean, but got a string instead.", 'stream', 'invalid_type')
  }
  return text === 'true'
}
