import type { ReceivedPart } from '../server/multipart-reader.js'

const OPUS_SAMPLES_PER_SECOND = 48_000
/** A page on which no packet ends has no time (RFC 3533 section 6). */
const NO_GRANULE_POSITION = 0xffffffffffffffffn

/** Kilobits per second by the index in the frame header, from 1 on; ISO 11172-3 and, "low", ISO 13818-3. */
const KILOBITS = {
  layer1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  layer2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  layer3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  lowLayer1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  low: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
}

/** Seconds of MPEG audio whose frames all have the bit rate of the first; undefined when `head` shows no first frame. */
function mpegSeconds(head: Buffer, fileBytes: number): number | undefined {
  const tagBytes = id3Bytes(head)
  if (tagBytes + 4 > head.length) return undefined
  const header = head.readUInt32BE(tagBytes)
  // Eleven set bits begin a frame.
  if (header >>> 21 !== 0x7ff) return undefined
  const bitRate = kilobitsTable((header >>> 19) & 3, (header >>> 17) & 3)?.[((header >>> 12) & 15) - 1]
  return bitRate === undefined ? undefined : ((fileBytes - tagBytes) * 8) / (bitRate * 1000)
}

/** Version 3 is MPEG-1, 1 is reserved; layers count down from 3 for layer I, and 0 is reserved (AAC in ADTS has it). */
function kilobitsTable(version: number, layer: number): readonly number[] | undefined {
  if (version === 1 || layer === 0) return undefined
  if (version === 3) return [KILOBITS.layer3, KILOBITS.layer2, KILOBITS.layer1][layer - 1]
  return layer === 3 ? KILOBITS.lowLayer1 : KILOBITS.low
}

/** An ID3v2 tag: ten bytes, the size in four times seven bits, and ten more when a footer is announced. */
function id3Bytes(head: Buffer): number {
  if (head.length < 10 || head.toString('latin1', 0, 3) !== 'ID3') return 0
  const size = head.subarray(6, 10).reduce((sum, digit) => sum * 128 + (digit & 0x7f), 0)
  return ((head[5] ?? 0) & 0x10) === 0 ? 10 + size : 20 + size
}

/** Seconds of Opus in Ogg: the time of the last page without what players skip (RFC 7845 section 4). */
function oggOpusSeconds(head: Buffer, tail: Buffer): number | undefined {
  const opusHead = head.subarray(0, 512).indexOf('OpusHead')
  if (opusHead < 0 || opusHead + 12 > head.length) return undefined
  const preSkip = head.readUInt16LE(opusHead + 10)
  const serialNumber = head.readUInt32LE(14)
  for (let page = lastPage(tail, tail.length); page >= 0; page = lastPage(tail, page)) {
    if (page + 27 > tail.length || tail.readUInt32LE(page + 14) !== serialNumber) continue
    const granulePosition = tail.readBigUInt64LE(page + 6)
    if (granulePosition === NO_GRANULE_POSITION) continue
    return Math.max(0, Number(granulePosition) - preSkip) / OPUS_SAMPLES_PER_SECOND
  }
  return undefined
}

const lastPage = (tail: Buffer, before: number): number => (before === 0 ? -1 : tail.lastIndexOf('OggS\0', before - 1))

/** Seconds by STREAMINFO (RFC 9639 section 8.2); undefined when its number of samples is 0, which means unknown. */
function flacSeconds(head: Buffer): number | undefined {
  if (head.length < 26 || ((head[4] ?? 0) & 0x7f) !== 0) return undefined
  const samplesPerSecond = head.readUIntBE(18, 3) >>> 4
  const samples = head.readUIntBE(21, 5) % 2 ** 36
  return samples === 0 || samplesPerSecond === 0 ? undefined : samples / samplesPerSecond
}

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
