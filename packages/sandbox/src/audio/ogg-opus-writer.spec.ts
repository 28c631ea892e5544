import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { writeOggOpus } from './audio-containers.js'
import { synthesizeSpeech } from './speech-synthesizer.js'

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
      fc.string({ unit: 'binary', maxLength: 60 }),
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
