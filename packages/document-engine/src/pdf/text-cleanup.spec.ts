import { expect, it } from '@jest/globals'
import { withoutCopies } from './drawn-twice.js'
import { withSoftHyphens } from './soft-hyphens.js'
import { joinedAtAccents } from './text-cleanup.js'
import type { PlacedText } from './text-place.js'

function text(value: string, x: number, y = 100): PlacedText {
  const place = { turn: 0 as const, x, y, length: value.length * 5, fontSize: 10 }
  return { text: value, fontName: 'f', ...place, isVertical: false, isTilted: false, isDrawnBold: false }
}

it('keeps one of the copies of a text, bold when they lie side by side', () => {
  expect(withoutCopies([text('word', 10), text('word', 10)])).toEqual([text('word', 10)])
  expect(withoutCopies([text('word', 10), text('word', 10.3)])).toEqual([{ ...text('word', 10), isDrawnBold: true }])
  expect(withoutCopies([text('shadow', 10), text('shadow', 11.5, 101.5)])).toEqual([text('shadow', 10)])
})

it('keeps equal neighbours', () => {
  const letters = [text('l', 10), text('l', 12.2), text('.', 20), text('.', 22.5)]
  expect(withoutCopies(letters)).toEqual(letters)
  const words = [text('word', 10), text('word', 10, 112), text('ward', 10)]
  expect(withoutCopies(words)).toEqual(words)
})

it('joins a letter with the accent drawn before it, whichever of them stands alone', () => {
  expect(joinedAtAccents([text('na¨', 10), text('ıve', 20), text('next', 50)])).toEqual([
    { ...text('naïve', 10), length: 25 },
    text('next', 50),
  ])
  expect(joinedAtAccents([text('na¨', 10), text('ıve', 40)])).toHaveLength(2)
})

it('gives a word the soft hyphen behind it, and no other word', () => {
  const [word, other] = withSoftHyphens([text('docu', 10), text('docu', 10, 112)], [[31, 100]])
  expect(word).toMatchObject({ text: 'docu\u00AD' })
  expect(other).toEqual(text('docu', 10, 112))
})
