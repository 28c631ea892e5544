import { describe, expect, it } from '@jest/globals'
import { markdownOf } from '../../../../../test/support/pdf-pages.js'

const BOLD = { isBold: true, font: 'F2' }
const CODE = { isFixedPitch: true, font: 'F3', width: 24 }

describe('marked words of a PDF', () => {
  it('are bold, italic or code within running text', () => {
    const markdown = markdownOf((page) => {
      page.text('one', 50, 100).text('two', 68, 100, BOLD).text('three', 86, 100).text('four', 114, 100, CODE)
      page.text('five', 141, 100, { isItalic: true }).text('six and seven', 164, 100)
    })
    expect(markdown).toBe('one **two** three `four` *five* six and seven\n')
  })

  it('are one piece over a line end', () => {
    const markdown = markdownOf((page) => {
      page.text('this begins', 50, 100, { width: 100 }).text('bold', 155, 100, { ...BOLD, width: 295 })
      page.text('words', 50, 112, BOLD).text('and ends', 78, 112)
    })
    expect(markdown).toBe('this begins **bold words** and ends\n')
  })

  it('are links where a link covers them, and only those', () => {
    const markdown = markdownOf((page) => {
      page.text('read the guide today', 50, 100).link(95, 90, 25, 13, 'https://example.org/guide')
    })
    expect(markdown).toBe('read the [guide](https://example.org/guide) today\n')
  })

  it('are bare addresses where the text is the address', () => {
    const url = 'https://example.org/a_b'
    const markdown = markdownOf((page) => page.text(`see ${url} now`, 50, 100).link(70, 90, url.length * 5, 13, url))
    expect(markdown).toBe(`see <${url}> now\n`)
  })

  it('are raised and lowered where small text stands off the baseline', () => {
    const markdown = markdownOf((page) => {
      page.text('E = mc', 50, 100).text('2', 80.2, 96.5, { fontSize: 7 }).text('and H', 87, 100)
      page.text('2', 112.2, 102, { fontSize: 7 }).text('O', 116, 100)
    })
    expect(markdown).toBe('E = mc<sup>2</sup> and H<sub>2</sub>O\n')
  })

  it('escape what would be Markdown', () => {
    expect(markdownOf((page) => page.text('a *b* and <i> or snake_case', 50, 100))).toBe(
      'a \\*b\\* and \\<i> or snake_case\n',
    )
  })
})

describe('code of a PDF', () => {
  const LOOK = { isFixedPitch: true, font: 'F3', fontSize: 10 }
  const at = (text: string): typeof LOOK & { width: number } => ({ ...LOOK, width: text.length * 6 })

  it('is fenced, with its indentation and its blank lines', () => {
    const markdown = markdownOf((page) => {
      page.text('Look:', 50, 80).text('if x:', 60, 100, at('if x:')).text('return', 84, 112, at('return'))
      page.text('done()', 60, 136, at('done()')).text('After it.', 50, 160)
    })
    expect(markdown).toBe('Look:\n\n```\nif x:\n    return\n\ndone()\n```\n\nAfter it.\n')
  })

  it('keeps the distance of its pieces', () => {
    const markdown = markdownOf((page) => {
      page.text('Options of the program:', 50, 80)
      page.text('-a', 60, 100, at('-a')).text('all', 108, 100, at('all')).text('-b', 60, 112, at('-b'))
    })
    expect(markdown).toContain('```\n-a      all\n-b\n```')
  })

  it('has a fence longer than any in it', () => {
    const markdown = markdownOf((page) => page.text('Text.', 50, 80).text('```', 50, 100, at('```')))
    expect(markdown).toContain('````\n```\n````')
  })
})
