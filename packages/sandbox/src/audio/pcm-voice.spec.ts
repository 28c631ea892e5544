import { describe, expect, it } from '@jest/globals'
import { renderPcmFrames, renderSyllable, SAMPLE_RATE, toPcmBytes, VOICE_COUNT } from './pcm-voice.js'

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
