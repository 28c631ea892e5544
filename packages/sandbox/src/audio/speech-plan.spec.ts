import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { planSpeech, speechDurationMs } from './speech-plan.js'

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
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
      fc.property(anyText, fc.double({ min: 0.25, max: 4, noNaN: true }), (text, speed) => {
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
