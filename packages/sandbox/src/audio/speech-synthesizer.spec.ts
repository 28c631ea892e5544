import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseBuffer } from 'music-metadata'
import { synthesizeSpeech, type SpeechFormat } from './speech-synthesizer.js'

const FORMATS: SpeechFormat[] = ['mp3', 'wav', 'aac', 'flac', 'opus', 'pcm']
const SENTENCE = 'Hello, world! This is the sandbox voice: it babbles as long as you like. 你好, мир.'

function speak(format: SpeechFormat, text: string, speed = 1): Buffer {
  return Buffer.concat([...synthesizeSpeech(text, { format, speed })])
}

/** Loudest sample of a stretch of PCM speech, times in milliseconds. */
function peakBetween(pcm: Buffer, fromMs: number, toMs: number): number {
  let peak = 0
  for (let offset = fromMs * 48; offset < toMs * 48; offset += 2)
    peak = Math.max(peak, Math.abs(pcm.readInt16LE(offset)))
  return peak
}

function heldBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

describe('PCM speech', () => {
  it('is loud at words and silent at spaces and punctuation', () => {
    const pcm = speak('pcm', 'word.     word')
    expect(peakBetween(pcm, 0, 240)).toBeGreaterThan(16_000)
    expect(peakBetween(pcm, 240, 600)).toBe(0)
    expect(peakBetween(pcm, 600, 840)).toBeGreaterThan(16_000)
  })

  it('lasts 60 ms for each character divided by the speed, for any text', () => {
    const anyText = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    )
    fc.assert(
      fc.property(anyText, fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
        const durationMs = speak('pcm', text, speed).length / 48
        expect(Math.abs(durationMs - Math.max(300, (Array.from(text).length * 60) / speed))).toBeLessThanOrEqual(10.001)
      }),
    )
  })

  it('sounds different when the letters differ', () => {
    expect(speak('pcm', 'aaaa').equals(speak('pcm', 'bbbb'))).toBe(false)
  })
})

describe('WAV speech', () => {
  it('is a RIFF header of unknown length for 24 kHz mono 16-bit, then the PCM speech', () => {
    const wav = speak('wav', SENTENCE)
    expect(wav.subarray(0, 44).toString('hex')).toBe(
      '52494646ffffffff57415645666d74201000000001000100c05d000080bb00000200100064617461ffffffff',
    )
    expect(wav.subarray(44).equals(speak('pcm', SENTENCE))).toBe(true)
  })
})

describe('synthesizeSpeech', () => {
  it.each([
    { format: 'mp3', mimeType: 'audio/mpeg', container: 'MPEG', codec: 'MPEG 2 Layer 3' },
    { format: 'wav', mimeType: 'audio/wav', container: 'WAVE', codec: 'PCM' },
    { format: 'aac', mimeType: 'audio/aac', container: 'ADTS/MPEG-4', codec: 'AAC' },
    { format: 'opus', mimeType: 'audio/ogg', container: 'Ogg', codec: 'Opus' },
  ] as const)('$format is what an audio file reader takes it for, with its duration', async (expected) => {
    for (const [text, speed] of [
      [SENTENCE, 1],
      [SENTENCE, 4],
      ['Hi', 1],
    ] as const) {
      const bytes = speak(expected.format, text, speed)
      const { format } = await parseBuffer(bytes, { mimeType: expected.mimeType }, { duration: true })
      expect(format).toMatchObject({ container: expected.container, codec: expected.codec, sampleRate: 24_000 })
      expect(format.numberOfChannels).toBe(1)
      const seconds = Math.max(0.3, (Array.from(text).length * 0.06) / speed)
      expect(Math.abs((format.duration ?? 0) - seconds)).toBeLessThanOrEqual(0.1 * seconds)
    }
  })

  it('flac is what an audio file reader takes it for', async () => {
    const { format } = await parseBuffer(speak('flac', SENTENCE), { mimeType: 'audio/flac' })
    expect(format).toMatchObject({ container: 'FLAC', sampleRate: 24_000, numberOfChannels: 1, bitsPerSample: 16 })
  })

  it.each(FORMATS)('gives %s in chunks of 20 to 200 ms after the header', (format) => {
    const chunks = [...synthesizeSpeech('a'.repeat(200), { format, speed: 1 })]
    expect(chunks.length).toBeGreaterThanOrEqual(12_000 / 200)
    expect(chunks.length).toBeLessThanOrEqual(12_000 / 20)
  })

  it.each(FORMATS)('gives the same %s bytes for the same text, whatever a consumer does to the chunks', (format) => {
    const before = speak(format, SENTENCE)
    for (const chunk of synthesizeSpeech(SENTENCE, { format, speed: 1 })) chunk.fill(0xaa)
    expect(speak(format, SENTENCE).equals(before)).toBe(true)
  })

  it.each([
    { format: 'mp3', speed: 1, smallestBytes: 300e6 },
    { format: 'aac', speed: 1, smallestBytes: 300e6 },
    { format: 'opus', speed: 1, smallestBytes: 180e6 },
    { format: 'flac', speed: 4, smallestBytes: 120e6 },
    { format: 'wav', speed: 4, smallestBytes: 700e6 },
    { format: 'pcm', speed: 4, smallestBytes: 700e6 },
  ] as const)('speaks 1,000,000 characters as $format without holding them', ({ format, speed, smallestBytes }) => {
    const text = 'sand box '.repeat(111_112)
    let bytes = 0
    let chunks = 0
    let mostHeld = 0
    const heldBefore = heldBytes()
    for (const chunk of synthesizeSpeech(text, { format, speed })) {
      bytes += chunk.length
      chunks += 1
      if (chunks % 1000 === 0) mostHeld = Math.max(mostHeld, heldBytes() - heldBefore)
    }
    expect(bytes).toBeGreaterThan(smallestBytes)
    expect(mostHeld).toBeLessThan(100e6)
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('refuses the speed %p at once', (speed) => {
    expect(() => synthesizeSpeech('Hello', { format: 'mp3', speed })).toThrow(RangeError)
  })
})
