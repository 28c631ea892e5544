import { OpenAiRejection, reject } from '../server/openai-rejection.js'
import { audioFacts, type AudioFacts } from '../transcription/audio-metadata.js'
import type { TranscriptionForm } from '../transcription/transcription-form.js'
import { TRANSCRIPTION_FAMILIES } from './model-formats.js'
import type { P1Family } from './p1-models.js'

const EXTENSIONS = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'] as const
const MIN_SECONDS = 0.1

/** Judges that there is a file part at all, before the model is looked at. Throws OpenAiRejection. */
export function judgeFilePart(form: TranscriptionForm): void {
  const { file } = form
  if (file === undefined)
    reject('1 validation error for Request\nbody -> file\n  field required (type=value_error.missing)')
  if (file.filename !== undefined) return
  const reason = `"Value error, Expected UploadFile, received: <class 'str'>"`
  reject(`[{'type': 'value_error', 'loc': ('body', 'file'), 'msg': ${reason}, 'input': '…', 'ctx': {'error': {}}}]`)
}

/** Judges name, signature and length of the file as the model's family does (section 5 of the audio notes). */
export function judgeFile(form: TranscriptionForm, family: P1Family): AudioFacts {
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
export function badLanguage(code: string): OpenAiRejection {
  const message = `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`
  return new OpenAiRejection(400, message, {
    param: 'language',
    code: 'invalid_language_format',
    siblings: { usage: { type: 'duration', seconds: 0 } },
  })
}
