import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { scheduleFrames, type FrameTable } from './frame-schedule.js'

const table: FrameTable<string> = {
  frameMs: 20,
  silence: '.',
  syllables: [
    ['A', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'],
    ['B', 'b', 'b', 'b', 'b', 'b', 'b', 'b', 'b', 'b'],
  ],
}

const speak = (text: string, speed = 1) => [...scheduleFrames(text, speed, table)].join('')

describe('scheduleFrames', () => {
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
