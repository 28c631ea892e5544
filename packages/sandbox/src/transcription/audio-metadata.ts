import type { ReceivedPart } from '../server/multipart-part.js'
import { flacSeconds, mpegSeconds, oggOpusSeconds } from './compressed-duration.js'

export type Container = 'wav' | 'flac' | 'ogg' | 'mp3' | 'webm' | 'mp4'

export interface AudioFacts {
  /** Undefined when no known signature was found: no decoder would read it. */
  readonly container: Container | undefined
  readonly seconds: number
  /** Hexadecimal SHA-1 of the whole file. */
  readonly sha1: string
}

/** Audio that does not tell its length is taken for 128 kbit/s. */
const ESTIMATED_BYTES_PER_SECOND = 16_000

/**
 * What can be known of an uploaded file. The duration is exact for WAV (from its byte count), MP3 of a constant bit rate,
 * Ogg Opus and FLAC that counts its samples, and estimated from the size otherwise.
 */
export function audioFacts(file: ReceivedPart): AudioFacts {
  const container = containerOf(file.head)
  const seconds = secondsOf(file, container) ?? file.size / ESTIMATED_BYTES_PER_SECOND
  return { container, seconds, sha1: file.sha1 }
}

function secondsOf({ head, tail, size }: ReceivedPart, container: Container | undefined): number | undefined {
  switch (container) {
    case 'wav':
      return wavSeconds(head, size)
    case 'mp3':
      return mpegSeconds(head, size)
    case 'ogg':
      return oggOpusSeconds(head, tail)
    case 'flac':
      return flacSeconds(head)
    case 'webm':
    case 'mp4':
    case undefined:
      return undefined
  }
}

function containerOf(head: Buffer): Container | undefined {
  const text = head.subarray(0, 12).toString('latin1')
  if (text.startsWith('RIFF') && text.endsWith('WAVE')) return 'wav'
  if (text.startsWith('fLaC')) return 'flac'
  if (text.startsWith('OggS')) return 'ogg'
  if (text.startsWith('ID3') || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)) return 'mp3'
  if (text.startsWith('\x1a\x45\xdf\xa3')) return 'webm'
  return text.slice(4, 8) === 'ftyp' ? 'mp4' : undefined
}

/** The sizes in the header are not trusted: a streamed WAV declares FFFFFFFF. */
function wavSeconds(head: Buffer, fileBytes: number): number {
  let offset = 12
  let bytesPerSecond = 0
  while (offset + 8 <= head.length) {
    const id = head.subarray(offset, offset + 4).toString('latin1')
    const size = head.readUInt32LE(offset + 4)
    if (id === 'fmt ' && offset + 20 <= head.length) bytesPerSecond = head.readUInt32LE(offset + 16)
    if (id === 'data') {
      const dataBytes = Math.min(size, fileBytes - offset - 8)
      return bytesPerSecond === 0 ? 0 : dataBytes / bytesPerSecond
    }
    // Chunks are padded to an even size.
    offset += 8 + size + (size % 2)
  }
  return 0
}
