import type { ModelClass } from '../config/channel-config.js'
import type { MultipartField, UploadedFile } from '../core/spooled-file.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import type { CallContext } from './call-context.js'

/** An audio file that was looked at, with the caller's fields in the order and spelling they came in. */
export interface TranscriptionCall {
  readonly file: UploadedFile
  /** By content, not by the caller's file name. */
  readonly extension: string
  readonly contentType: string
  readonly durationSeconds?: number
  readonly fields: readonly MultipartField[]
  /** The format the caller asked for; `json` when absent. */
  readonly responseFormat: string
  readonly stream: boolean
  readonly modelClass: ModelClass
}

export interface TranscriptionProvider {
  transcribe(transcription: TranscriptionCall, context: CallContext): Promise<UpstreamAnswer>
}

/** Audio in any language to English text. */
export interface TranslationProvider {
  translate(translation: TranscriptionCall, context: CallContext): Promise<UpstreamAnswer>
}
