import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { loadEncodedFrames } from './encoded-syllables.js'
import { VOICE_COUNT } from './pcm-voice.js'
import { synthesizeSpeech } from './speech-synthesizer.js'

type Walker = (bytes: Buffer) => number

/** Walks MPEG-2 layer III frames (48 kbit/s, 24 kHz, mono) to the exact end; milliseconds of sound. */
const walkMp3: Walker = (bytes) => {
  let frames = 0
  for (let offset = 0; offset < bytes.length; frames += 1) {
    const header = bytes.readUInt32BE(offset)
    expect(header >>> 21).toBe(0x7ff)
    expect((header >>> 17) & 0xf).toBe(0b1001)
    expect((header >>> 12) & 0xf).toBe(6)
    expect((header >>> 10) & 3).toBe(1)
    expect((header >>> 6) & 3).toBe(3)
    const hasCrc = ((header >>> 16) & 1) === 0
    expect(bytes[offset + (hasCrc ? 6 : 4)]).toBe(0)
    const padding = (header >>> 9) & 1
    offset += (72 * 48_000) / 24_000 + padding
    expect(offset).toBeLessThanOrEqual(bytes.length)
  }
  return frames * 24
}

/** Walks ADTS frames (AAC-LC, 24 kHz, mono, one block each) to the exact end; milliseconds of sound. */
const walkAdts: Walker = (bytes) => {
  let frames = 0
  for (let offset = 0; offset < bytes.length; frames += 1) {
    expect(bytes.readUInt16BE(offset) & 0xfff6).toBe(0xfff0)
    const header = bytes.readUInt32BE(offset + 2)
    expect(header >>> 30).toBe(1)
    expect((header >>> 26) & 0xf).toBe(6)
    expect((header >>> 22) & 7).toBe(1)
    expect((bytes[offset + 6] ?? 3) & 3).toBe(0)
    offset += (header >>> 5) & 0x1fff
    expect(offset).toBeLessThanOrEqual(bytes.length)
  }
  return (frames * 1024) / 24
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
)

describe.each([
  { format: 'mp3' as const, walk: walkMp3 },
  { format: 'aac' as const, walk: walkAdts },
])('$format speech', ({ format, walk }) => {
  it('is whole frames to the last byte for any text, its length following text and speed within 10 %', () => {
    fc.assert(
      fc.property(anyText, fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
        const durationMs = walk(Buffer.concat([...synthesizeSpeech(text, { format, speed })]))
        const expectedMs = Math.max(300, (Array.from(text).length * 60) / speed)
        expect(Math.abs(durationMs - expectedMs)).toBeLessThanOrEqual(0.1 * expectedMs)
      }),
    )
  })

  it('says something at every word and nothing at spaces', () => {
    const { silence } = loadEncodedFrames(format)
    const silentBytes = Buffer.concat([...synthesizeSpeech(' '.repeat(40), { format, speed: 1 })])
    expect(silentBytes.length % silence.length).toBe(0)
    for (let offset = 0; offset < silentBytes.length; offset += silence.length) {
      expect(silentBytes.subarray(offset, offset + silence.length).equals(silence)).toBe(true)
    }
    const spoken = Buffer.concat([...synthesizeSpeech('word', { format, speed: 1 })])
    expect(spoken.includes(loadEncodedFrames(format).syllables['w'.charCodeAt(0) % VOICE_COUNT]?.[2] ?? '?')).toBe(true)
  })
})

describe.each(['mp3', 'aac', 'opus'] as const)('the %s table', (format) => {
  const { frameMs, silence, syllables } = loadEncodedFrames(format)

  it('holds one syllable for each voice, all of the same 200 to 216 ms', () => {
    expect(syllables.length).toBe(VOICE_COUNT)
    for (const frames of syllables) {
      expect(frames.length).toBe(syllables[0]?.length)
      expect(frames.length * frameMs).toBeGreaterThanOrEqual(200)
      expect(frames.length * frameMs).toBeLessThanOrEqual(216)
    }
  })

  it('holds sound that differs from silence and from every other syllable', () => {
    const sounds = syllables.map((frames) => Buffer.concat([...frames]).toString('base64'))
    expect(new Set(sounds).size).toBe(VOICE_COUNT)
    for (const frames of syllables) {
      expect(frames.filter((frame) => !frame.equals(silence)).length * frameMs).toBeGreaterThanOrEqual(120)
    }
  })
})
