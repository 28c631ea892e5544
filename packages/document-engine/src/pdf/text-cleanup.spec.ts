import { describe, expect, it } from '@jest/globals'
import type { PlacedText } from './geometry.js'
import { joinedAtAccents, readableText, withAccents, withoutCopies, withSoftHyphens } from './text-cleanup.js'

describe('text cleanup', () => {
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
})

describe('glyph text', () => {
  it.each([
    ['ligatures', 'ﬁnal oﬃce', 'final office'],
    ['Arabic shapes and ligatures, in logical order', 'ﻻ ﺑﻚ', 'لا بك'],
    ['radicals in the place of ideographs', '⽂⼀ \u2EC5\u2ED3\u2EF3\u2E9F \u2E9A', '文一 见长龟母 \u2E9A'],
    ['wide and hard spaces', 'a\u00A0b\u2003c', 'a b c'],
  ])('resolves %s', (_name, text, expected) => {
    expect(readableText(text)).toBe(expected)
  })

  it('keeps what says something of its own: ², ½, ①, full width, soft hyphens, emoji', () => {
    const text = 'x² ½ ① Ａ co\u00ADop 👍🏽 ﷺ'
    expect(readableText(text)).toBe(text)
  })

  it('drops control characters, private characters and halves of characters', () => {
    expect(readableText('a\u0000\u0003b\uE123c\uD800d\uFFFDe')).toBe('abcde')
  })

  it('reads the list markers of symbol fonts', () => {
    expect(readableText('\uF0B7 one \uF0A7 two')).toBe('• one ▪ two')
  })

  it('puts accents upon the letters they are drawn beside', () => {
    expect(withAccents('na¨ıve Erd˝os Ceˇska ¸ca')).toBe('naïve Erdős Ceška ça')
    expect(withAccents('5´ and ˜x˜')).toBe('5´ and ˜x˜')
  })
})
