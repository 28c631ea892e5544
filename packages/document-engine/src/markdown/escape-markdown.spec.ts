import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../../../test/support/eventually.js'
import { escapeInline, escapeLineStart, escapeMarkdown } from './escape-markdown.js'

describe('escapeMarkdown', () => {
  it.each([
    ['plain prose', 'Nothing to see here.', 'Nothing to see here.'],
    ['a product', '3 * 4 = 12', '3 * 4 = 12'],
    ['asterisks that would make emphasis', 'a *b* c', 'a \\*b\\* c'],
    ['an asterisk at the end of a word', 'from $5*', 'from $5\\*'],
    ['a name in snake case', 'call snake_case__name now', 'call snake_case__name now'],
    ['underscores around a word', 'the _private_ one', 'the \\_private\\_ one'],
    ['a blank to fill in', 'Name: ____ (please)', 'Name: ____ (please)'],
    ['brackets', 'see [1] and [2]', 'see [1] and [2]'],
    ['brackets that would be a link', 'see [1](x)', 'see \\[1\\]\\(x)'],
    ['a backtick', 'the ` key', 'the \\` key'],
    ['a comparison', 'a < b > c', 'a < b > c'],
    ['a tag', 'write <b> here', 'write \\<b> here'],
    ['an end tag', '</p>', '\\</p>'],
    ['a comment', '<!-- x', '\\<!-- x'],
    ['a tag behind a bare URL', 'at https://e.org/.<b> now', 'at https://e.org/.&lt;b> now'],
    ['an entity', 'write &copy; or &#39;', 'write \\&copy; or \\&#39;'],
    ['an ampersand', 'Q & A, R&D', 'Q & A, R&D'],
    ['a backslash before punctuation', 'a\\*b', 'a\\\\\\*b'],
    ['a backslash before a letter', 'C:\\dir', 'C:\\dir'],
    ['a backslash at the end', 'C:\\', 'C:\\\\'],
    ['a tilde for about', 'about ~5 or ~6', 'about ~5 or ~6'],
    ['a tilde that could close', '~a~ b', '~a\\~ b'],
    ['two tildes', '~~a~~', '\\~\\~a\\~\\~'],
    ['a bare URL with underscores', 'at https://e.org/_a_/b*c* now', 'at https://e.org/_a_/b*c\\* now'],
    ['a heading', '# no', '\\# no'],
    ['a hashtag', '#yes', '#yes'],
    ['a quote', '> no', '\\> no'],
    ['a bullet', '- no', '\\- no'],
    ['another bullet', '+ no', '\\+ no'],
    ['a third bullet', '* no', '\\* no'],
    ['a negative number', '-5 degrees', '-5 degrees'],
    ['an ordered marker', '1. no', '1\\. no'],
    ['another ordered marker', '12) no', '12\\) no'],
    ['a decimal', '1.5 litres', '1.5 litres'],
    ['a year at the end', '2019.', '2019\\.'],
    ['a rule', '---', '\\---'],
    ['a spaced rule', '* * *', '\\* * *'],
    ['an underline of a heading', '===', '\\==='],
    ['a delimiter row', '--- | :-:', '\\--- | :-:'],
    ['a definition of a link', '[a]: b', '[a\\]: b'],
    ['a fence', '```', '\\`\\`\\`'],
    ['a pipe outside tables', 'a | b', 'a | b'],
    ['several lines', 'a\n- b\n1. c', 'a\n\\- b\n1\\. c'],
  ])('keeps %s what it is', (_title, text, markdown) => {
    expect(escapeMarkdown(text)).toBe(markdown)
  })

  it('adds backslashes only, so that nothing of a text is lost', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const escaped = escapeMarkdown(text)
        let index = 0
        for (const character of escaped)
          if (character === text.charAt(index) || text.startsWith(character, index)) index += character.length
        expect(index).toBe(text.length)
      }),
    )
  })

  it('takes time in proportion to hostile text', () => {
    const texts = ['*', '_', '`', '~', '[', '\\', '-', '=', '&', 'http://.', 'www.<b', '<b', '|-', ' ', '#'].map(
      (unit) => unit.repeat(500_000),
    )
    const start = cpuMs()
    for (const text of texts) escapeMarkdown(`${text}x`)
    expect(cpuMs() - start).toBeLessThan(10_000)
  })
})

describe('escapeInline', () => {
  it('escapes brackets within the text of a link', () => {
    expect(escapeInline('a [b] c', { before: ' ', after: ' ', isLinkText: true })).toBe('a \\[b\\] c')
  })

  it('escapes at the edge of a text that stands beside markup', () => {
    expect(escapeInline('_a', { before: 'x', after: ' ', isLinkText: false })).toBe('_a')
    expect(escapeInline('_a', { before: '~', after: ' ', isLinkText: false })).toBe('\\_a')
  })
})

describe('escapeLineStart', () => {
  it('leaves finished inline markup alone', () => {
    expect(escapeLineStart('**1.** [a](b): `c`')).toBe('**1.** [a](b): `c`')
  })
})
