import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { pagesToMarkdown } from './pages-to-markdown.js'
import type { PdfPage } from './pdf-page.js'

const anyNumber = fc.oneof(
  fc.double({ min: -50, max: 900 }),
  fc.integer({ min: 0, max: 80 }).map((step) => step * 12),
  fc.constantFrom(NaN, Infinity, -Infinity, 0, 1e12),
)
const anyText = fc.oneof(
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.constantFrom('•', '1.', '(a)', '. . . . . 4', 'שלום', '中文', '-', '|', '`'),
)
const anyRun = fc.record({
  text: anyText,
  x: anyNumber,
  y: anyNumber,
  width: anyNumber,
  fontSize: fc.oneof(fc.constantFrom(0, 6, 10, 12, 20), anyNumber),
  font: fc.constantFrom('F1', 'F2'),
  isBold: fc.boolean(),
  isItalic: fc.boolean(),
  isFixedPitch: fc.boolean(),
})
const anyRule = fc.record({ x1: anyNumber, y1: anyNumber, x2: anyNumber, y2: anyNumber })
const anyLink = fc.record({ x: anyNumber, y: anyNumber, width: anyNumber, height: anyNumber, url: fc.webUrl() })
const anyPage = fc.record({
  number: fc.integer({ min: 1, max: 9 }),
  width: anyNumber,
  height: anyNumber,
  runs: fc.array(anyRun, { maxLength: 40 }),
  rules: fc.array(anyRule, { maxLength: 12 }),
  links: fc.array(anyLink, { maxLength: 4 }),
})
const anyOutline = fc.array(fc.record({ title: fc.string(), level: fc.integer({ min: 1, max: 9 }) }), { maxLength: 4 })

describe('the layout of any pages', () => {
  it('never fails, ends in one line break and closes its fences', () => {
    fc.assert(
      fc.property(fc.array(anyPage, { maxLength: 5 }), anyOutline, (pages, outline) => {
        const markdown = pagesToMarkdown(pages, outline)
        expect(markdown === '' || /[^\n]\n$/.test(markdown)).toBe(true)
        expect(markdown).not.toMatch(/^#{7}/m)
        expect((markdown.match(/^`{3,}$/gm) ?? []).length % 2).toBe(0)
      }),
      { numRuns: 300 },
    )
  })

  it('loses no word of plain lines and adds none', () => {
    const word = fc.stringMatching(/^[a-z]{1,9}$/)
    const lines = fc.array(fc.array(word, { minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(lines, (texts) => {
        const runs = texts.map((words, index) => lineRun(words.join(' '), 80 + index * 12))
        const markdown = pagesToMarkdown([pageOf(runs)], [])
        expect(markdown.match(/[a-z]+/g)).toEqual(texts.flat())
      }),
    )
  })

  it('reads a hundred thousand runs as well as one', () => {
    const runs = Array.from({ length: 100_000 }, (_, index) =>
      lineRun('word', 20 + Math.floor(index / 40) * 12, 20 + (index % 40) * 25),
    )
    expect(pagesToMarkdown([pageOf(runs)], []).match(/word/g)).toHaveLength(100_000)
  })
})

function lineRun(text: string, y: number, x = 50): PdfPage['runs'][number] {
  const plain = { font: 'F1', isBold: false, isItalic: false, isFixedPitch: false }
  return { text, x, y, width: text.length * 5, fontSize: 10, ...plain }
}

function pageOf(runs: PdfPage['runs']): PdfPage {
  return { number: 1, width: 600, height: 800, runs, rules: [], links: [] }
}
