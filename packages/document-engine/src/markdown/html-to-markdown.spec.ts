import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/' })
}

const TAGS = 'p div span b i s code a ul ol li dl dt dd blockquote h2 table tr td th pre sup q details summary'.split(
  ' ',
)
const TEXTS = [
  'word',
  ' ',
  ' two words ',
  '*',
  '_x_',
  '`',
  '```',
  '|',
  '-',
  '1. ',
  '# ',
  '&lt;script>',
  '中文。',
  '\n',
  '[x](y)',
  '\\',
  '>',
]
const VOID = ['<br>', '<hr>', '<img src="/i.png" alt="a|b">', '<input type="checkbox">', '<script>alert(1)</script>']

const html = fc.letrec<{ node: string; nodes: string }>((tie) => ({
  nodes: fc.array(tie('node'), { maxLength: 5 }).map((nodes) => nodes.join('')),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...TEXTS),
    fc.constantFrom(...VOID),
    fc.tuple(fc.constantFrom(...TAGS), tie('nodes')).map(([tag, nodes]) => {
      const attributes = tag === 'a' ? ' href="/x"' : tag === 'td' ? ' colspan="2" rowspan="2"' : ''
      return `<${tag}${attributes}>${nodes}</${tag}>`
    }),
  ),
})).nodes

const ESCAPE_OR_CODE = /\\[^]|(`+)(?!`)[^]*?(?<!`)\1(?!`)/g

interface Line {
  readonly text: string
  readonly isCode: boolean
}

/** Lines without the marks of quotes and items, and whether each stands within a fence; fails for a fence left open. */
function linesOf(markdown: string): Line[] {
  let fence = ''
  const lines = markdown.split('\n').map((line): Line => {
    const text = line.replace(/^(?:> ?|- |\d+[.)] |\[[ x]\] | )+/, '')
    const run = /^`{3,}/.exec(text)?.[0] ?? ''
    const isFence = fence === '' ? run !== '' && !text.slice(run.length).includes('`') : text === fence
    if (!isFence) return { text: line, isCode: fence !== '' }
    fence = fence === '' ? run : ''
    return { text: line, isCode: true }
  })
  expect(fence).toBe('')
  return lines
}

describe('Markdown made of any HTML', () => {
  it('ends with one line feed, and has neither trailing blanks nor two blank lines in a row outside code', () => {
    fc.assert(
      fc.property(html, (source) => {
        const markdown = markdownOf(source)
        expect(markdown).toMatch(/^$|[^\n]\n$/)
        const lines = linesOf(markdown)
        for (const [index, { text, isCode }] of lines.slice(0, -1).entries()) {
          if (isCode) continue
          expect(text).toBe(text.trimEnd())
          if (text === '') expect(lines[index + 1]?.text).not.toBe('')
        }
      }),
      { numRuns: 500 },
    )
  })

  it('lets no tag through that a page could run', () => {
    fc.assert(
      fc.property(html, (source) => {
        const prose = linesOf(markdownOf(source)).filter(({ isCode }) => !isCode)
        for (const { text } of prose) {
          const open = text.replace(ESCAPE_OR_CODE, '')
          expect(open).not.toMatch(/<(?!br>|\/?code>|\/?su[bp]>|https?:)[a-z/!]/i)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('gives all rows of a table the same number of cells', () => {
    const cell = fc.tuple(
      fc.constantFrom('td', 'th'),
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: 0, max: 4 }),
      html,
    )
    const rows = fc.array(fc.array(cell, { maxLength: 4 }), { maxLength: 5 })
    fc.assert(
      fc.property(rows, (cells) => {
        const source = cells.map((row) => {
          const inner = row.map(
            ([tag, columns, reach, content]) => `<${tag} colspan="${columns}" rowspan="${reach}">${content}</${tag}>`,
          )
          return `<tr>${inner.join('')}</tr>`
        })
        let width = 0
        for (const { text, isCode } of linesOf(markdownOf(`<table>${source.join('')}</table>`))) {
          const isRow = !isCode && /^[> -]*\|.*\|$/.test(text)
          const bars = text.replace(/\\[^]/g, '').split('|').length
          if (isRow && width > 0) expect(bars).toBe(width)
          width = isRow ? bars : 0
        }
      }),
      { numRuns: 500 },
    )
  })

  it('does not change the tree it reads', () => {
    fc.assert(
      fc.property(html, (source) => {
        const page = parseHTML(`<html><body>${source}</body></html>`) as unknown as { document: { body: MarkupNode } }
        const { body } = page.document
        const first = htmlToMarkdown(body, { baseUrl: '' })
        expect(htmlToMarkdown(body, { baseUrl: '' })).toBe(first)
      }),
    )
  })

  it('keeps every word', () => {
    const words = fc.array(fc.constantFrom('b', 'i', 's', 'a', 'span', 'p', 'li', 'td', 'h3', 'code', 'sup'), {
      minLength: 1,
      maxLength: 30,
    })
    fc.assert(
      fc.property(words, (tags) => {
        const source = tags.map((tag, index) => `<${tag} href="/x">word${index}end</${tag}> `).join('')
        const markdown = markdownOf(source)
        for (const index of tags.keys()) expect(markdown).toContain(`word${index}end`)
      }),
    )
  })
})
