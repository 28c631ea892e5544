import { GatewayError } from '../core/gateway-error.js'

/** Specification, transcription request: accepted file formats. */
export const ACCEPTED_FILE_FORMATS = ['mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'wav', 'webm', 'ogg', 'flac'] as const

export interface AudioFacts {
  readonly container: 'mpeg-audio' | 'mpeg-program' | 'mp4' | 'wav' | 'webm' | 'ogg' | 'flac'
  /** What upstreams that judge by the file name must see, without a dot. */
  readonly extension: (typeof ACCEPTED_FILE_FORMATS)[number]
  readonly contentType: string
  /** Absent when the file does not tell. */
  readonly durationSeconds?: number
}

/** The file is of no accepted kind. */
export function notAudio(): GatewayError {
  const message = `Invalid file format. Supported formats: ${ACCEPTED_FILE_FORMATS.join(', ')}.`
  return new GatewayError('invalid_request', message, { code: 'invalid_audio_format', param: 'file' })
}

/** The file is of an accepted kind, and no decoder could read it. */
export function undecodable(reason: string): GatewayError {
  const message = `The audio file could not be decoded: ${reason}.`
  return new GatewayError('invalid_request', message, { code: 'audio_undecodable', param: 'file' })
}

export function emptyFile(): GatewayError {
  return new GatewayError('invalid_request', 'The audio file is empty.', { code: 'empty_file', param: 'file' })
}
