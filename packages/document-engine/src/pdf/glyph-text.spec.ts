import { expect, it } from '@jest/globals'
import { readableText } from './glyph-text.js'
import { withAccents } from './text-cleanup.js'

it.each([
  ['ligatures', 'ﬁnal oﬃce', 'final office'],
  ['Arabic shapes and ligatures, in logical order', 'ﻻ ﺑﻚ', 'لا بك'],
  ['radicals in the place of ideographs', '⽂⼀', '文一'],
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
