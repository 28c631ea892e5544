import { createCrc } from './audio-containers.js'

/** Collects values of any number of bits, highest bit first, into bytes. */
class BitWriter {
  private readonly bytes: number[] = []
  private partialByte = 0
  private partialBits = 0

  /** Appends the lowest `bits` (0 to 32) bits of a value; negative values go in two's complement. */
  write(value: number, bits: number): void {
    for (let bit = bits - 1; bit >= 0; bit -= 1) this.writeBit((value >>> bit) & 1)
  }

  /** Appends `count` zero bits and a one: the unary code of Rice coding. */
  writeUnary(count: number): void {
    for (let zero = 0; zero < count; zero += 1) this.writeBit(0)
    this.writeBit(1)
  }

  /** Fills the last byte with zero bits and returns everything written. */
  finish(): Buffer {
    while (this.partialBits > 0) this.writeBit(0)
    return Buffer.from(this.bytes)
  }

  private writeBit(bit: number): void {
    this.partialByte = (this.partialByte << 1) | bit
    this.partialBits += 1
    if (this.partialBits < 8) return
    this.bytes.push(this.partialByte)
    this.partialByte = 0
    this.partialBits = 0
  }
}

const SAMPLE_BITS = 16
const CONSTANT_SUBFRAME = 0b000000
const VERBATIM_SUBFRAME = 0b000001
/** The fixed predictor of order 0 predicts nothing: its residual is the samples (RFC 9639 section 9.2.5). */
const UNPREDICTED_SUBFRAME = 0b001000
const HIGHEST_RICE_PARAMETER = 14
/** Rice coding with 4-bit parameters, in one partition: 2 bits for the method, 4 for the partition order. */
const ONE_PARTITION = 0b00_0000
const RESIDUAL_HEADER_BITS = 6
const RICE_PARAMETER_BITS = 4

/**
 * One FLAC subframe (RFC 9639 section 9.2) of 16-bit samples, filled up to whole bytes: constant when all samples are
 * equal, otherwise the bare samples, verbatim or in a Rice code where that is smaller. Nothing is predicted.
 */
export function encodeFlacSubframe(samples: Int16Array): Buffer {
  const bits = new BitWriter()
  const first = samples[0] ?? 0
  if (samples.every((sample) => sample === first)) {
    writeSubframeHeader(bits, CONSTANT_SUBFRAME)
    bits.write(first, SAMPLE_BITS)
    return bits.finish()
  }
  const costs = Array.from({ length: HIGHEST_RICE_PARAMETER + 1 }, (_, parameter) => riceBits(samples, parameter))
  const cheapest = Math.min(...costs)
  if (RESIDUAL_HEADER_BITS + RICE_PARAMETER_BITS + cheapest >= samples.length * SAMPLE_BITS) {
    writeSubframeHeader(bits, VERBATIM_SUBFRAME)
    for (const sample of samples) bits.write(sample, SAMPLE_BITS)
  } else {
    writeSubframeHeader(bits, UNPREDICTED_SUBFRAME)
    writeRiceCode(bits, samples, costs.indexOf(cheapest))
  }
  return bits.finish()
}

function writeSubframeHeader(bits: BitWriter, type: number): void {
  bits.write(type << 1, 8)
}

function riceBits(samples: Int16Array, parameter: number): number {
  return samples.reduce((bits, sample) => bits + (foldSign(sample) >>> parameter) + 1 + parameter, 0)
}

function writeRiceCode(bits: BitWriter, samples: Int16Array, parameter: number): void {
  bits.write(ONE_PARTITION, RESIDUAL_HEADER_BITS)
  bits.write(parameter, RICE_PARAMETER_BITS)
  for (const sample of samples) {
    const folded = foldSign(sample)
    bits.writeUnary(folded >>> parameter)
    bits.write(folded, parameter)
  }
}

/** 0, -1, 1, -2, 2 … become 0, 1, 2, 3, 4 …, as Rice coding asks for. */
function foldSign(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1
}

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
 * One FLAC frame of mono 16-bit samples at 24 kHz around an encoded subframe; `frameNumber` counts from 0 and stays under 2^31.
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
