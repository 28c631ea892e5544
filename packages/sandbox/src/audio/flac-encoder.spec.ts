import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../../test/support/arbitraries.js'
import { writeOggOpus } from './audio-containers.js'
import { encodeFlacFrame, flacStreamHeader } from './flac-encoder.js'
import { synthesizeSpeech } from './speech-synthesizer.js'

/** Reads bits from the highest down and remembers how far it came. */
class BitReader {
  constructor(
    private readonly bytes: Buffer,
    public position: number,
  ) {}

  unsigned(bits: number): number {
    let value = 0
    for (let bit = 0; bit < bits; bit += 1, this.position += 1) {
      const byte = this.bytes[this.position >> 3]
      if (byte === undefined) throw new Error('the stream ends inside a frame')
      value = value * 2 + ((byte >> (7 - (this.position & 7))) & 1)
    }
    return value
  }

  signed(bits: number): number {
    const value = this.unsigned(bits)
    return value >= 2 ** (bits - 1) ? value - 2 ** bits : value
  }

  unary(): number {
    let zeros = 0
    while (this.unsigned(1) === 0) zeros += 1
    return zeros
  }
}

/** A CRC one bit at a time, unlike the encoder's table. */
function bitwiseCrc(bytes: Buffer, bits: number, polynomial: number): number {
  let crc = 0
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const carry = ((crc >>> (bits - 1)) & 1) ^ ((byte >> bit) & 1)
      crc = ((crc << 1) ^ (carry === 1 ? polynomial : 0)) & (2 ** bits - 1)
    }
  }
  return crc
}

function readFrameNumber(reader: BitReader): number {
  const lead = reader.unsigned(8)
  if (lead < 0x80) return lead
  const length = Math.clz32(~(lead << 24))
  let value = lead & (0x7f >> length)
  for (let tail = 1; tail < length; tail += 1) {
    expect(reader.unsigned(2)).toBe(0b10)
    value = value * 64 + reader.unsigned(6)
  }
  return value
}

const FIXED_COEFFICIENTS = [[], [1], [2, -1], [3, -3, 1], [4, -6, 4, -1]]

function readFixed(reader: BitReader, order: number, blockSize: number): number[] {
  const samples = Array.from({ length: order }, () => reader.signed(16))
  expect(reader.unsigned(2)).toBe(0)
  const partitionSize = blockSize >> reader.unsigned(4)
  expect(partitionSize).toBeGreaterThan(order)
  let parameter = 0
  for (let index = order; index < blockSize; index += 1) {
    if (index === order || index % partitionSize === 0) parameter = reader.unsigned(4)
    const folded = reader.unary() * 2 ** parameter + reader.unsigned(parameter)
    const residual = folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2
    const coefficients = FIXED_COEFFICIENTS[order] ?? []
    const predicted = coefficients.reduce((sum, factor, back) => sum + factor * (samples[index - 1 - back] ?? 0), 0)
    samples.push(predicted + residual)
  }
  return samples
}

function readSubframe(reader: BitReader, blockSize: number): number[] {
  expect(reader.unsigned(1)).toBe(0)
  const type = reader.unsigned(6)
  expect(reader.unsigned(1)).toBe(0)
  if (type === 0) return new Array<number>(blockSize).fill(reader.signed(16))
  if (type === 1) return Array.from({ length: blockSize }, () => reader.signed(16))
  expect(type).toBeGreaterThanOrEqual(8)
  expect(type).toBeLessThanOrEqual(12)
  return readFixed(reader, type - 8, blockSize)
}

function readFrame(bytes: Buffer, start: number): { frameNumber: number; samples: number[]; end: number } {
  const reader = new BitReader(bytes, start * 8)
  expect(reader.unsigned(16)).toBe(0xfff8)
  expect([reader.unsigned(4), reader.unsigned(4)]).toEqual([7, 7])
  expect([reader.unsigned(4), reader.unsigned(3), reader.unsigned(1)]).toEqual([0, 4, 0])
  const frameNumber = readFrameNumber(reader)
  const blockSize = reader.unsigned(16) + 1
  expect(bitwiseCrc(bytes.subarray(start, reader.position / 8), 8, 0x07)).toBe(reader.unsigned(8))
  const samples = readSubframe(reader, blockSize)
  const end = Math.ceil(reader.position / 8)
  expect(bitwiseCrc(bytes.subarray(start, end), 16, 0x8005)).toBe(bytes.readUInt16BE(end))
  return { frameNumber, samples, end: end + 2 }
}

function readStream(bytes: Buffer): Int16Array {
  expect(bytes.subarray(0, 8).toString('hex')).toBe('664c614380000022')
  expect(bytes.subarray(8, 42).toString('hex')).toBe('01e001e000000000000005dc00f0' + '00'.repeat(20))
  const samples: number[] = []
  for (let offset = 42, count = 0; offset < bytes.length; count += 1) {
    const frame = readFrame(bytes, offset)
    expect(frame.frameNumber).toBe(count)
    for (const sample of frame.samples) samples.push(sample)
    offset = frame.end
  }
  return Int16Array.from(samples)
}

function speak(format: 'flac' | 'pcm', text: string, speed: number): Buffer {
  return Buffer.concat([...synthesizeSpeech(text, { format, speed })])
}

function expectSameSound(text: string, speed: number): void {
  const decoded = readStream(speak('flac', text, speed))
  const pcm = speak('pcm', text, speed)
  expect(decoded.length * 2).toBe(pcm.length)
  expect(decoded.findIndex((sample, index) => sample !== pcm.readInt16LE(index * 2))).toBe(-1)
}

describe('FLAC speech', () => {
  it('decodes to exactly the samples of the PCM speech', () => {
    expectSameSound('Hello, world! The quick brown fox jumps over the lazy dog.', 1)
  })

  it('does so for any Unicode text and speed', () => {
    const speeds = fc.constantFrom(0.25, 0.5, 1, 1.7, 4)
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 8 }), speeds, (text, speed) => {
        expectSameSound(text, speed)
      }),
      { numRuns: 30 },
    )
  })

  it('takes well under half the bytes of the PCM speech', () => {
    const text = 'The quick brown fox jumps over the lazy dog. '.repeat(4)
    expect(speak('flac', text, 1).length).toBeLessThan(0.5 * speak('pcm', text, 1).length)
  })
})

describe('encodeFlacFrame', () => {
  const sample = fc.oneof(fc.integer({ min: -32_768, max: 32_767 }), fc.constantFrom(-32_768, 32_767, 0))

  it('gives any samples back bit for bit', () => {
    const blocks = fc.oneof(
      fc.array(sample, { minLength: 1, maxLength: 200 }),
      fc.array(sample, { minLength: 96, maxLength: 96 }),
      fc.array(fc.integer({ min: -20, max: 20 }), { minLength: 160, maxLength: 160 }),
    )
    fc.assert(
      fc.property(blocks, (block) => {
        const bytes = encodeFlacFrame(0, Int16Array.from(block))
        expect(readFrame(bytes, 0)).toEqual({ frameNumber: 0, samples: block, end: bytes.length })
      }),
      { numRuns: 300 },
    )
  })

  it('gives a curve whose bends repeat back bit for bit', () => {
    const accelerations = Array.from({ length: 32 }, (_, index) => [300, 0, -300, 0][(index >> 1) % 4] ?? 0)
    let speed = 0
    let position = 0
    const block = accelerations.map((acceleration) => (position += speed += acceleration))
    const bytes = encodeFlacFrame(0, Int16Array.from(block))
    expect(readFrame(bytes, 0).samples).toEqual(block)
  })

  it('needs few bits for samples near zero', () => {
    const quiet = Int16Array.from({ length: 480 }, (_, index) => [0, 1, -1, 0, 2, -2][index % 6] ?? 0)
    expect(encodeFlacFrame(0, quiet).length).toBeLessThan((480 * 4) / 8)
  })

  it.each([0, 127, 128, 2047, 2048, 65_535, 65_536, 2_097_151, 2_097_152, 67_108_863, 67_108_864, 2_147_483_647])(
    'numbers frame %i as FLAC codes it',
    (frameNumber) => {
      expect(readFrame(encodeFlacFrame(frameNumber, Int16Array.of(5, 5)), 0).frameNumber).toBe(frameNumber)
    },
  )
})

describe('flacStreamHeader', () => {
  it('says 24 kHz, mono, 16 bits, and leaves length and MD5 unknown', () => {
    const reader = new BitReader(flacStreamHeader(24_000, 480), 18 * 8)
    expect([reader.unsigned(20), reader.unsigned(3), reader.unsigned(5), reader.unsigned(36)]).toEqual([
      24_000, 0, 15, 0,
    ])
  })
})

interface Page {
  flags: number
  granulePosition: bigint
  packets: Buffer[]
}

/** Ogg's CRC one bit at a time, unlike the writer's table. */
function bitwiseOggCrc(page: Buffer): number {
  let crc = 0
  page.forEach((byte, index) => {
    crc ^= (index >= 22 && index < 26 ? 0 : byte) << 24
    for (let bit = 0; bit < 8; bit += 1) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1
  })
  return crc >>> 0
}

function splitPackets(lacing: Buffer, body: Buffer): Buffer[] {
  const packets: Buffer[] = []
  let start = 0
  let end = 0
  for (const length of lacing) {
    end += length
    if (length === 255) continue
    packets.push(body.subarray(start, end))
    start = end
  }
  expect(lacing.at(-1)).not.toBe(255)
  return packets
}

/** Walks the pages of one logical stream to the exact end, checking every header and checksum. */
function readPages(bytes: Buffer): Page[] {
  const pages: Page[] = []
  for (let offset = 0; offset < bytes.length;) {
    expect(bytes.toString('latin1', offset, offset + 5)).toBe('OggS\0')
    const segments = bytes.readUInt8(offset + 26)
    const lacing = bytes.subarray(offset + 27, offset + 27 + segments)
    const bodyStart = offset + 27 + segments
    const end = bodyStart + lacing.reduce((sum, length) => sum + length, 0)
    expect(end).toBeLessThanOrEqual(bytes.length)
    expect(bytes.readUInt32LE(offset + 14)).toBe(bytes.readUInt32LE(14))
    expect(bytes.readUInt32LE(offset + 18)).toBe(pages.length)
    expect(bytes.readUInt32LE(offset + 22)).toBe(bitwiseOggCrc(bytes.subarray(offset, end)))
    pages.push({
      flags: bytes.readUInt8(offset + 5),
      granulePosition: bytes.readBigUInt64LE(offset + 6),
      packets: splitPackets(lacing, bytes.subarray(bodyStart, end)),
    })
    offset = end
  }
  return pages
}

/** Checks an Ogg Opus stream from head to end flag; milliseconds of sound after the pre-skip. */
function checkOpus(bytes: Buffer): number {
  const [head, tags, ...audio] = readPages(bytes)
  const headPacket = head?.packets[0] ?? Buffer.alloc(0)
  expect(headPacket.subarray(0, 10).toString('latin1')).toBe('OpusHead\x01\x01')
  expect(headPacket.readUInt32LE(12)).toBe(24_000)
  expect(tags?.packets[0]?.toString('latin1', 0, 8)).toBe('OpusTags')
  expect([head?.granulePosition, tags?.granulePosition]).toEqual([0n, 0n])
  expect([head?.flags, tags?.flags]).toEqual([2, 0])
  let samples = 0n
  audio.forEach((page, index) => {
    expect(page.flags).toBe(index === audio.length - 1 ? 4 : 0)
    for (const packet of page.packets) {
      // RFC 6716 section 3.1: a configuration of 20 ms CELT, mono, one frame in the packet.
      expect([19, 23, 27, 31]).toContain((packet[0] ?? 0) >> 3)
      expect((packet[0] ?? 7) & 7).toBe(0)
    }
    samples += BigInt(960 * page.packets.length)
    expect(page.granulePosition).toBe(samples)
  })
  return (Number(samples) - headPacket.readUInt16LE(10)) / 48
}

describe('Opus speech', () => {
  it('is a valid Ogg stream for any text, its length following text and speed within 10 %', () => {
    const anyText = fc.oneof(
      fc.string({ unit: codePoint, maxLength: 60 }),
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    )
    fc.assert(
      fc.property(anyText, fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
        const durationMs = checkOpus(Buffer.concat([...synthesizeSpeech(text, { format: 'opus', speed })]))
        const expectedMs = Math.max(300, (Array.from(text).length * 60) / speed)
        expect(Math.abs(durationMs - expectedMs)).toBeLessThanOrEqual(0.1 * expectedMs)
      }),
    )
  })
})

describe('writeOggOpus', () => {
  it('keeps packets of any length whole', () => {
    const lengths = [1, 3, 254, 255, 256, 509, 510, 511, 1275]
    const packets = lengths.map((length, index) => Buffer.alloc(length, index + 1))
    const written = readPages(Buffer.concat([...writeOggOpus(packets, 24_000)])).slice(2)
    expect(written.flatMap((page) => page.packets)).toEqual(packets)
    expect(written.map((page) => page.packets.length)).toEqual([6, 3])
  })

  it('marks the end on the last full page too', () => {
    const packets = new Array<Buffer>(12).fill(Buffer.of(0xd8, 0xff, 0xfe))
    const pages = readPages(Buffer.concat([...writeOggOpus(packets, 24_000)]))
    expect(pages.map((page) => page.flags)).toEqual([2, 0, 0, 4])
  })
})
