import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseBuffer } from 'music-metadata'
import { codePoint } from '../../../../test/support/arbitraries.js'
import { heldBytes, heldBytesAtMost } from '../../../../test/support/held-memory.js'
import { renderPcmFrames, renderSyllable, SAMPLE_RATE, toPcmBytes, VOICE_COUNT } from './pcm-voice.js'
import {
  type FrameTable,
  loadEncodedFrames,
  planSpeech,
  scheduleFrames,
  speechDurationMs,
  type SpeechFormat,
  synthesizeSpeech,
} from './speech-synthesizer.js'

/** Any characters, and any halves of characters. */
const anyText = (maxLength: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ unit: codePoint, maxLength }),
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  )

describe('planSpeech', () => {
  it('makes one syllable of every four letters, and of the rest of a word', () => {
    expect([...planSpeech('sandbox', 1)]).toEqual([
      { kind: 'syllable', pitch: 's'.charCodeAt(0), durationMs: 240 },
      { kind: 'syllable', pitch: 'b'.charCodeAt(0), durationMs: 180 },
    ])
  })

  it('pauses at spaces and punctuation, 60 ms for each', () => {
    expect([...planSpeech('Oh, a!', 1)]).toEqual([
      { kind: 'syllable', pitch: 'O'.charCodeAt(0), durationMs: 120 },
      { kind: 'silence', durationMs: 120 },
      { kind: 'syllable', pitch: 'a'.charCodeAt(0), durationMs: 60 },
      { kind: 'silence', durationMs: 60 },
    ])
  })

  it('speaks twice as long at half the speed', () => {
    expect([...planSpeech('a ', 0.5)]).toEqual([
      { kind: 'syllable', pitch: 97, durationMs: 120 },
      { kind: 'silence', durationMs: 120 },
    ])
  })

  it('counts a character outside the basic plane once', () => {
    expect([...planSpeech('😀', 1)]).toEqual([{ kind: 'syllable', pitch: 0x1f600, durationMs: 60 }])
  })

  it('covers every character of any text', () => {
    fc.assert(
      fc.property(anyText(200), fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
        const total = [...planSpeech(text, speed)].reduce((sum, segment) => sum + segment.durationMs, 0)
        expect(total).toBeCloseTo((Array.from(text).length * 60) / speed, 3)
      }),
    )
  })
})

describe('speechDurationMs', () => {
  it('is 300 ms at least, even for no text at all', () => {
    expect(speechDurationMs('', 1)).toBe(300)
    expect(speechDurationMs('Hello!', 4)).toBe(300)
    expect(speechDurationMs('Hello!', 1)).toBe(360)
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('refuses the speed %p', (speed) => {
    expect(() => speechDurationMs('Hello', speed)).toThrow(RangeError)
  })
})

describe('scheduleFrames', () => {
  const table: FrameTable<string> = {
    frameMs: 20,
    silence: '.',
    syllables: [
      ['A', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'],
      ['B', 'b', 'b', 'b', 'b', 'b', 'b', 'b', 'b', 'b'],
    ],
  }

  const speak = (text: string, speed = 1) => [...scheduleFrames(text, speed, table)].join('')

  it('starts each syllable where its letters stand and fills the rest with silence', () => {
    expect(speak('bbbb  aaaa')).toBe('Aaaaaaaaaa' + '........' + 'Bbbbbbbbbb' + '..')
  })

  it('chooses the syllable by the first of its characters', () => {
    expect(speak('aaaabbbb').replace(/[^AB]/g, '')).toBe('BA')
  })

  it('moves the last syllable forward so that it ends with the speech', () => {
    expect(speak('................a')).toBe('.'.repeat(41) + 'Bbbbbbbbbb')
  })

  it('lets a syllable of a short word run into the pause, and leaves out one that would overlap', () => {
    expect(speak('a a a a a')).toBe('Bbbbbbbbbb' + '..' + 'Bbbbbbbbbb' + '.....')
  })

  it('is silent for text without a letter', () => {
    expect(speak(' ,.!? -')).toBe('.'.repeat(21))
  })

  it('always speaks when there is a letter, and never cuts a syllable', () => {
    const speeds = fc.double({ min: 0.25, max: 4, noNaN: true })
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'b', ' ', '.') }), speeds, (text, speed) => {
        const spoken = speak(text, speed)
        expect(spoken.length).toBe(Math.round(Math.max(300, (text.length * 60) / speed) / 20))
        expect(spoken).toMatch(/^(\.|Aa{9}|Bb{9})*$/)
        expect(/[AB]/.test(spoken)).toBe(/[ab]/.test(text))
      }),
    )
  })
})

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

describe.each([
  { format: 'mp3' as const, walk: walkMp3 },
  { format: 'aac' as const, walk: walkAdts },
])('$format speech', ({ format, walk }) => {
  it('is whole frames to the last byte for any text, its length following text and speed within 10 %', () => {
    fc.assert(
      fc.property(anyText(60), fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
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

/** Pitch by autocorrelation: the delay, in samples, at which the middle of the sound resembles itself most. */
function measurePitchHz(samples: Int16Array): number {
  const middle = samples.subarray(600, 1200)
  let best = { delay: 0, likeness: -Infinity }
  for (let delay = 90; delay <= 260; delay += 1) {
    const likeness = middle.reduce((sum, sample, index) => sum + sample * (samples[600 + index + delay] ?? 0), 0)
    if (likeness > best.likeness) best = { delay, likeness }
  }
  return SAMPLE_RATE / best.delay
}

const voices = Array.from({ length: VOICE_COUNT }, (_, voice) => voice)

describe('renderSyllable', () => {
  it.each(voices)('gives voice %i an audible sound that starts and ends in silence', (voice) => {
    const samples = renderSyllable(voice)
    const peak = Math.max(...samples.map(Math.abs))
    const energy = samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length
    expect(peak).toBeGreaterThan(0.5 * 32_768)
    expect(peak).toBeLessThan(0.7 * 32_768)
    expect(Math.sqrt(energy)).toBeGreaterThan(0.05 * 32_768)
    const edges = [...samples.subarray(0, 48), ...samples.subarray(-48)]
    expect(Math.max(...edges.map(Math.abs))).toBeLessThan(0.02 * peak)
  })

  it.each(voices)('speaks voice %i at its own pitch, one octave from the lowest to the highest', (voice) => {
    const expectedHz = 110 * 2 ** (voice / 7)
    const measuredHz = measurePitchHz(renderSyllable(voice))
    expect(measuredHz).toBeGreaterThan(expectedHz * 0.92)
    expect(measuredHz).toBeLessThan(expectedHz * 1.02)
  })
})

describe('renderPcmFrames', () => {
  it('cuts every syllable into ten frames of 20 ms that keep the whole sound', () => {
    const { silence, syllables } = renderPcmFrames()
    expect(silence).toEqual(new Int16Array(480))
    syllables.forEach((frames, voice) => {
      expect(frames.map((frame) => frame.length)).toEqual(new Array(10).fill(480))
      const whole = Int16Array.from(frames.flatMap((frame) => [...frame]))
      expect(whole.subarray(480, 3480)).toEqual(renderSyllable(voice))
      expect(whole.subarray(3480)).toEqual(new Int16Array(1320))
    })
  })
})

describe('toPcmBytes', () => {
  it('writes signed 16-bit little-endian samples', () => {
    expect(toPcmBytes(Int16Array.of(1, -2, 32_767, -32_768)).toString('hex')).toBe('0100feffff7f0080')
  })
})

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

describe('PCM speech', () => {
  it('is loud at words and silent at spaces and punctuation', () => {
    const pcm = speak('pcm', 'word.     word')
    expect(peakBetween(pcm, 0, 240)).toBeGreaterThan(16_000)
    expect(peakBetween(pcm, 240, 600)).toBe(0)
    expect(peakBetween(pcm, 600, 840)).toBeGreaterThan(16_000)
  })

  it('lasts 60 ms for each character divided by the speed, for any text', () => {
    fc.assert(
      fc.property(anyText(40), fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
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

  it.each(FORMATS)('gives the same %s bytes for the same text, also if a consumer changes the chunks', (format) => {
    const before = speak(format, SENTENCE)
    for (const chunk of synthesizeSpeech(SENTENCE, { format, speed: 1 })) chunk.fill(0xaa)
    expect(speak(format, SENTENCE).equals(before)).toBe(true)
  })

  const MOST_HELD_BYTES = 10e6
  it.each([
    { format: 'mp3', speed: 1, smallestBytes: 37e6 },
    { format: 'aac', speed: 1, smallestBytes: 37e6 },
    { format: 'opus', speed: 1, smallestBytes: 22e6 },
    { format: 'flac', speed: 2, smallestBytes: 30e6 },
    { format: 'wav', speed: 4, smallestBytes: 87e6 },
    { format: 'pcm', speed: 4, smallestBytes: 87e6 },
  ] as const)('speaks 125,000 characters as $format without holding them', ({ format, speed, smallestBytes }) => {
    const text = 'sand box '.repeat(13_889)
    let bytes = 0
    let chunks = 0
    let mostHeld = 0
    const heldBefore = heldBytes()
    for (const chunk of synthesizeSpeech(text, { format, speed })) {
      bytes += chunk.length
      chunks += 1
      if (chunks % 200 === 0) mostHeld = Math.max(mostHeld, heldBytesAtMost(heldBefore + MOST_HELD_BYTES) - heldBefore)
    }
    expect(bytes).toBeGreaterThan(smallestBytes)
    expect(mostHeld).toBeLessThan(MOST_HELD_BYTES)
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('refuses the speed %p at once', (speed) => {
    expect(() => synthesizeSpeech('Hello', { format: 'mp3', speed })).toThrow(RangeError)
  })
})
