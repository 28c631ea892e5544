import { createHash } from 'node:crypto'
import { OpenAiRejection, reject, unknownModel } from '../server/openai-rejection.js'
import { audioFacts, type AudioFacts } from '../transcription/audio-metadata.js'
import { languageName } from '../transcription/languages.js'
import {
  judgeGranularities,
  judgePartNames,
  judgeTemperature,
  type TranscriptionForm,
} from '../transcription/transcription-form.js'

export type P4Mode = 'groq' | 'openai'

const RULES = {
  groq: {
    formats: ['json', 'text', 'verbose_json'],
    extensions: ['flac', 'mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'ogg', 'opus', 'wav', 'webm'],
    parts: ['url'],
    minSeconds: 0.01,
  },
  openai: {
    formats: ['json', 'text', 'srt', 'verbose_json', 'vtt'],
    extensions: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'],
    parts: [],
    minSeconds: 0.1,
  },
} as const satisfies Record<P4Mode, object>

const COMMON_PARTS = [
  'file',
  'model',
  'language',
  'prompt',
  'response_format',
  'temperature',
  'timestamp_granularities[]',
]
/** Audio behind a URL is not fetched; the simulator pretends to have heard this many seconds. */
const URL_SECONDS = 1

/** A form that was found good. */
export interface P4Request {
  readonly task: 'transcribe' | 'translate'
  readonly format: string
  /** Lower-case English name. */
  readonly language: string
  readonly granularities: readonly string[]
  readonly facts: AudioFacts
}

/** Judges a form as the whisper host does. Throws OpenAiRejection. */
export function judgeP4Form(form: TranscriptionForm, task: 'transcribe' | 'translate', mode: P4Mode): P4Request {
  const rules = RULES[mode]
  judgeModel(form.text('model') ?? '', task, mode)
  judgePartNames(form, [...COMMON_PARTS, ...rules.parts])
  const format = form.text('response_format') ?? 'json'
  if (!rules.formats.some((name) => name === format)) {
    const allowed = rules.formats.map((name) => `\`${name}\``).join(', ')
    const message = `\`response_format\` must be one of ${allowed}; got '${format}'`
    reject(message, 'response_format', 'unsupported_value')
  }
  judgeTemperature(form)
  const language = judgeLanguage(form, task)
  const granularities = judgeGranularities(form, format)
  return { task, format, language, granularities, facts: judgeAudio(form, mode) }
}

/** Any id that is not `missing-…` and names whisper is taken; turbo models do not translate. */
function judgeModel(model: string, task: 'transcribe' | 'translate', mode: P4Mode): void {
  if (model === '') reject('you must provide a model parameter', mode === 'groq' ? 'model' : null)
  if (model.startsWith('missing-') || !model.includes('whisper')) throw unknownModel(model)
  if (task === 'translate' && model.includes('turbo')) {
    reject(`The model \`${model}\` does not support translation.`, 'model', 'invalid_value')
  }
}

function judgeLanguage(form: TranscriptionForm, task: 'transcribe' | 'translate'): string {
  const code = form.text('language')
  if (code === undefined || task === 'translate') return 'english'
  const name = languageName(code)
  if (name !== undefined) return name
  const message = `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`
  reject(message, 'language', 'invalid_language_format')
}

function judgeAudio(form: TranscriptionForm, mode: P4Mode): AudioFacts {
  const url = mode === 'groq' ? form.text('url') : undefined
  const { file } = form
  if (file === undefined && url !== undefined) return factsOfUrl(url)
  if (file === undefined)
    reject(mode === 'groq' ? '`file` or `url` is required' : "'file' is required", 'file', 'invalid_value')
  if (file.filename === undefined) reject("'file' must be sent with a filename", 'file', 'invalid_value')
  const { extensions, minSeconds } = RULES[mode]
  const extension = file.filename.split('.').at(-1)?.toLowerCase()
  if (!extensions.some((name) => name === extension)) {
    const list = extensions.join(' ')
    reject(`file must be one of the following types: [${list}]`, 'file', 'invalid_value')
  }
  const facts = audioFacts(file)
  if (facts.container === undefined) {
    throw new OpenAiRejection(400, 'could not process file - is it a valid media file?', { code: 'invalid_value' })
  }
  if (facts.seconds < minSeconds) {
    const message = `Audio file is too short. Minimum audio length is ${minSeconds} seconds.`
    reject(message, 'file', 'audio_too_short')
  }
  return facts
}

function factsOfUrl(url: string): AudioFacts {
  if (!/^(https?:\/\/|data:audio\/)/.test(url)) reject('`url` must be a valid URL', 'url', 'invalid_value')
  return { container: 'wav', seconds: URL_SECONDS, sha1: createHash('sha1').update(url).digest('hex') }
}
