import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { webUrl } from '../../../../../test/support/arbitraries.js'
import { cpuMs } from '../../../../../test/support/eventually.js'
import { markdownOf, type PageMaker, proseLines } from '../../../../../test/support/pdf-files.js'
import type { PdfPage } from './layout-model.js'
import { pagesToMarkdown } from './pages-to-markdown.js'

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
const anyLink = fc.record({ x: anyNumber, y: anyNumber, width: anyNumber, height: anyNumber, url: webUrl })
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

const COLUMN = { width: 230 }
const THIRD = { width: 140 }

/** Where each word first stands. */
function order(markdown: string, words: readonly string[]): string[] {
  return [...words].sort((a, b) => markdown.indexOf(a) - markdown.indexOf(b))
}

describe('columns of a PDF', () => {
  it('are read one after the other, below a title over both', () => {
    const markdown = markdownOf((page) => {
      page.text('A title over both of the columns here', 120, 60, { fontSize: 18 })
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['right', ...proseLines(20, 40, 3)], 310, 100, COLUMN)
    })
    expect(order(markdown, ['Left', 'right', 'title'])).toEqual(['title', 'Left', 'right'])
    expect(markdown.match(/\n\n/g)).toHaveLength(1)
  })

  it('are three where there are three', () => {
    const markdown = markdownOf((page) => {
      for (const [index, word] of ['Alpha', 'beta', 'gamma'].entries()) {
        page.lines([word, ...proseLines(15, 24, index)], 40 + index * 175, 100, THIRD)
      }
    })
    expect(order(markdown, ['gamma', 'beta', 'Alpha'])).toEqual(['Alpha', 'beta', 'gamma'])
    expect(markdown).not.toContain('|')
  })

  it('begin anew below a line over both', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Aaa', ...proseLines(8, 40)], 50, 100, COLUMN)
        .lines(['bbb', ...proseLines(8, 40, 3)], 310, 100, COLUMN)
      page.text('Across the whole page and more', 50, 230, { width: 490, fontSize: 14 })
      page
        .lines(['Ccc', ...proseLines(8, 40)], 50, 260, COLUMN)
        .lines(['ddd', ...proseLines(8, 40, 3)], 310, 260, COLUMN)
    })
    expect(order(markdown, ['ddd', 'Ccc', 'Across', 'bbb', 'Aaa'])).toEqual(['Aaa', 'bbb', 'Across', 'Ccc', 'ddd'])
  })

  it('need not have their lines at one height', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['right', ...proseLines(20, 40, 3)], 310, 105, COLUMN)
    })
    expect(order(markdown, ['right', 'Left'])).toEqual(['Left', 'right'])
    expect(markdown.trim().split('\n')).toHaveLength(1)
  })

  it('may hold a table each', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['Right', ...proseLines(8, 40, 3)], 310, 100, COLUMN)
      page
        .grid([310, 400, 540], [220, 240, 260])
        .row(['Name', 'Text'], [315, 405], 234)
        .row(['Pipe', 'new'], [315, 405], 254)
    })
    expect(markdown).toMatch(/^Left [^|]+\n\n\| Name \| Text \|\n\| --- \| --- \|\n\| Pipe \| new \|\n$/)
    expect(order(markdown, ['Name', 'Right', 'Left'])).toEqual(['Left', 'Right', 'Name'])
  })
})

/** Pages of prose with what `frame` adds to each. */
function pagesWith(count: number, frame: (page: PageMaker, number: number) => unknown): string {
  return markdownOf(
    ...Array.from({ length: count }, (_, index) => (page: PageMaker) => {
      page.lines(proseLines(20, 70, index), 50, 100, { width: 400 })
      frame(page, index + 1)
    }),
  )
}

describe('heads and feet that come back on the pages of a PDF', () => {
  it('are left out, page numbers of all kinds among them', () => {
    const markdown = pagesWith(5, (page, number) => {
      page.text('Annual report', 50, 40).text(`Page ${number} of 5`, 250, 770)
    })
    expect(markdown).not.toMatch(/Annual|Page/)
  })

  it('are left out when left and right pages differ', () => {
    const markdown = pagesWith(8, (page, number) => {
      if (number % 2 === 0) page.text('Even head', 50, 40)
      else page.text('Odd head', 350, 40)
    })
    expect(markdown).not.toContain('head')
  })

  it('are left out when their words change with the chapter', () => {
    const markdown = pagesWith(9, (page, number) => {
      page.text(number < 5 ? 'Beginnings' : 'Endings', 50, 40).text(String(number + 16), 500, 40)
    })
    expect(markdown).not.toMatch(/Beginnings|Endings|17|20/)
  })

  it('are left out when they count in roman numbers', () => {
    const numerals = ['i', 'ii', 'iii', 'iv', 'v']
    const markdown = pagesWith(5, (page, number) => page.text(numerals[number - 1] ?? '', 300, 770))
    expect(markdown).not.toMatch(/\biv\b/)
  })

  it('stay when they are on two pages only', () => {
    expect(pagesWith(2, (page) => page.text('Annual report', 50, 40))).toContain('Annual report')
  })

  it('leave alone first lines that stand at one place but say different things', () => {
    const words = ['apple', 'pear', 'plum', 'cherry', 'quince']
    const markdown = pagesWith(5, (page, number) => page.text(`The ${words[number - 1] ?? ''} ripens.`, 50, 60))
    for (const word of words) expect(markdown).toContain(word)
  })
})

const CHARACTERS = 60_000
/** Each takes less than a tenth of it; a quadratic step takes many times as long. */
const LONGEST_MS = 2000

describe('a line of a PDF without end', () => {
  it.each(['.', '. ', 'a', 'a-', '-', '\u00a0', '1.', '1. ', '[', '(', '*', '_', '`', '|', '<', '&', '•', '— ', '中'])(
    'of nothing but %j takes time in proportion to its length',
    (piece) => {
      const text = piece.repeat(CHARACTERS / piece.length)
      const startedAtMs = cpuMs()
      const markdown = markdownOf((page) => {
        page.text(`x${text}!`, 50, 100, { width: 400 }).text(`${text}x-`, 50, 112, { width: 400 })
        page.text(text, 50, 124, { width: 400 }).text('and the end', 50, 136, { width: 400 })
      })
      expect(cpuMs() - startedAtMs).toBeLessThan(LONGEST_MS)
      expect(markdown).toContain('and the end')
    },
  )
})
