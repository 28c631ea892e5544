import { GatewayError } from '../core/errors.js'
import type { SpooledFile } from '../core/spooled-file.js'

const WINDOW_BYTES = 64 * 1024

/** Random access to a spooled file from `start` on, through one window of 64 KiB: walkers read a few bytes at a time. */
export class ByteWindow {
  readonly size: number
  readonly #spool: SpooledFile
  readonly #start: number
  #loaded: Buffer = Buffer.alloc(0)
  #loadedAt = 0

  constructor(spool: SpooledFile, start = 0) {
    this.#spool = spool
    this.#start = start
    this.size = spool.size - start
  }

  /** The same file with `offset` bytes fewer at its beginning. */
  from(offset: number): ByteWindow {
    return offset === 0 ? this : new ByteWindow(this.#spool, this.#start + offset)
  }

  /** Up to `length` bytes at `position`; fewer at the end of the file. Valid until the next call. */
  async bytes(position: number, length: number): Promise<Buffer> {
    if (length > WINDOW_BYTES) return this.#spool.read(this.#start + position, length)
    const end = Math.min(position + length, this.size)
    if (position < this.#loadedAt || end > this.#loadedAt + this.#loaded.length) {
      this.#loaded = await this.#spool.read(this.#start + position, WINDOW_BYTES)
      this.#loadedAt = position
    }
    return this.#loaded.subarray(position - this.#loadedAt, Math.max(end - this.#loadedAt, position - this.#loadedAt))
  }
}

/** Specification, transcription request: accepted file formats. */
export const ACCEPTED_FILE_FORMATS = ['mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'wav', 'webm', 'ogg', 'flac'] as const

export interface AudioFacts {
  readonly container: 'mpeg-audio' | 'mpeg-program' | 'mp4' | 'wav' | 'webm' | 'ogg' | 'flac'
  /** File name extension for upstreams that detect the format by it, without a dot. */
  readonly extension: (typeof ACCEPTED_FILE_FORMATS)[number]
  readonly contentType: string
  readonly durationSeconds?: number
}

/** Error for a file of an unsupported format. */
export function notAudio(): GatewayError {
  const message = `Invalid file format. Supported formats: ${ACCEPTED_FILE_FORMATS.join(', ')}.`
  return new GatewayError('invalid_request', message, { code: 'invalid_audio_format', param: 'file' })
}

/** Error for a file of a supported format that no decoder could read. */
export function undecodable(reason: string): GatewayError {
  const message = `The audio file could not be decoded: ${reason}.`
  return new GatewayError('invalid_request', message, { code: 'audio_undecodable', param: 'file' })
}

export function emptyFile(): GatewayError {
  return new GatewayError('invalid_request', 'The audio file is empty.', { code: 'empty_file', param: 'file' })
}
