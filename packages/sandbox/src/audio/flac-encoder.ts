import { createCrc } from './crc.js'
import { BitWriter } from './bit-writer.js'
import { encodeFlacSubframe } from './flac-subframe.js'

/** FLAC's own code for 24,000 Hz in a frame header (RFC 9639 section 9.1.2). */
const SAMPLE_RATE_24KHZ_CODE = 0b0111
/** The block size follows the frame number in 16 bits (RFC 9639 section 9.1.1). */
const BLOCK_SIZE_16_BITS_CODE = 0b0111
const MONO_16_BITS = 0b0000_100_0
const SYNC_FIXED_BLOCK_SIZE = 0xfff8
const STREAMINFO_BYTES = 34
const LAST_METADATA_BLOCK = 0x80
const crc8 = createCrc(8, 0x07)
const crc16 = createCrc(16, 0x8005)

/**
 * The beginning of a streamed mono 16-bit FLAC file: the marker and STREAMINFO. The number of samples, the frame sizes
 * and the MD5 sum are zero, which stands for "unknown" (RFC 9639 section 8.2). `blockSize` is in samples, 16 to 65,535.
 */
export function flacStreamHeader(sampleRate: number, blockSize: number): Buffer {
  const bits = new BitWriter()
  bits.write(blockSize, 16)
  bits.write(blockSize, 16)
  bits.write(0, 24)
  bits.write(0, 24)
  bits.write(sampleRate, 20)
  bits.write(0, 3)
  bits.write(15, 5)
  const streamInfo = Buffer.alloc(STREAMINFO_BYTES)
  bits.finish().copy(streamInfo)
  return Buffer.concat([
    Buffer.from('fLaC', 'latin1'),
    Buffer.of(LAST_METADATA_BLOCK, 0, 0, STREAMINFO_BYTES),
    streamInfo,
  ])
}

/**
 * One FLAC frame of mono 16-bit samples at 24 kHz around an encoded subframe; `frameNumber` counts from 0 and stays
 * under 2^31.
 */
export function flacFrame(frameNumber: number, blockSize: number, subframe: Buffer): Buffer {
  const number = codedNumber(frameNumber)
  const headerBytes = 4 + number.length + 2
  const frame = Buffer.alloc(headerBytes + 1 + subframe.length + 2)
  frame.writeUInt16BE(SYNC_FIXED_BLOCK_SIZE, 0)
  frame.writeUInt8((BLOCK_SIZE_16_BITS_CODE << 4) | SAMPLE_RATE_24KHZ_CODE, 2)
  frame.writeUInt8(MONO_16_BITS, 3)
  frame.set(number, 4)
  frame.writeUInt16BE(blockSize - 1, 4 + number.length)
  frame.writeUInt8(crc8(frame.subarray(0, headerBytes)), headerBytes)
  frame.set(subframe, headerBytes + 1)
  frame.writeUInt16BE(crc16(frame.subarray(0, frame.length - 2)), frame.length - 2)
  return frame
}

/** Encodes one block of samples at 24 kHz (1 to 65,535 of them) as a whole FLAC frame. */
export function encodeFlacFrame(frameNumber: number, samples: Int16Array): Buffer {
  return flacFrame(frameNumber, samples.length, encodeFlacSubframe(samples))
}

/** RFC 9639 section 9.1.5: the frame number in the manner of UTF-8, stretched to six bytes. */
function codedNumber(value: number): number[] {
  if (value < 0x80) return [value]
  const tail: number[] = []
  let rest = value
  let leadingBits = 6
  do {
    tail.unshift(0x80 | (rest & 0x3f))
    rest >>>= 6
    leadingBits -= 1
  } while (rest >= 1 << leadingBits)
  return [((0xff << (leadingBits + 1)) & 0xff) | rest, ...tail]
}
