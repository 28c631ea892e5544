import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../../test/support/cpu-time.js'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

// Each takes well under two seconds on one idle core; a quadratic step takes minutes.
const LONGEST_MS = 15_000

function conversion(html: string): { markdown: string; elapsedMs: number } {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  const start = cpuMs()
  const markdown = htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/' })
  return { markdown, elapsedMs: cpuMs() - start }
}

function repeated(unit: string, count: number): string {
  return unit.repeat(count)
}

describe('Hostile HTML', () => {
  it.each([
    ['a table of 100,000 cells', `<table>${repeated(`<tr>${repeated('<td>c</td>', 10)}</tr>`, 10_000)}</table>`],
    ['a row of 30,000 cells', `<table><tr>${repeated('<th>c</th>', 30_000)}</tr></table>`],
    [
      'cells that span everything',
      `<table>${repeated('<tr><th colspan=1000 rowspan=65534>x</th><td>y</td></tr>', 20_000)}</table>`,
    ],
    [
      'a long cell over all rows',
      `<table><tr><th rowspan=0>${repeated('x', 100_000)}</th><th>y</th></tr>${repeated('<tr><td>x</td></tr>', 20_000)}</table>`,
    ],
    [
      'ragged rows',
      `<table><tr>${repeated('<th>c</th>', 10_000)}</tr>${repeated('<tr><td>x</td></tr>', 20_000)}</table>`,
    ],
    ['tables in tables', repeated('<table><tr><th>a</th><td rowspan=3>', 150) + repeated('<p>x</p>', 20_000)],
    ['10 MB of text', `<p>${repeated('lorem ipsum_dolor *sit* [a](b) ', 330_000)}</p>`],
    ['50,000 pieces of emphasis', `<p>x<b>${repeated('<i>a.</i>b<code>c</code>', 50_000)}</b>y`],
    ['emphasised breaks', `<p>a<b>${repeated('<br>', 100_000)}</b>b`],
    ['quotes in quotes', repeated('<blockquote>', 500) + repeated('<p>x</p>', 20_000)],
    ['lists in lists', repeated('<ul><li>', 250) + repeated('<p>x</p>', 20_000)],
    ['lists between items', `<ul><li>a</li>${repeated('<ul><li>b</li></ul>', 30_000)}</ul>`],
    ['headings in headings', repeated('<h2><div>', 250) + repeated('<p>x</p>', 20_000)],
    ['scripts in scripts', repeated('<sup>', 500) + repeated('x', 100_000)],
    ['links in links', repeated('<a href="#x">', 250) + repeated('<a href="/x"><p>', 250) + repeated('x<br>', 20_000)],
    [
      'formulas without source',
      `<span>${repeated('<img class="tex" alt="x"><span class="katex"></span>', 10_000)}</span>`,
    ],
    [
      'runs of delimiters',
      `<p>${['*', '_', '`', '~', '.', '\u00a0'].map((unit) => `a<b>${repeated(unit, 200_000)}</b>b`).join('')}`,
    ],
    ['styles without end', `<p>a<span style="${repeated('text-decorationa :lin', 20_000)}">b</span>`],
    ['attributes without end', `<img srcset="${repeated(',', 200_000)}"><a href="/${repeated('(', 200_000)}">x</a>`],
  ])('takes time in proportion to its size: %s', (_title, html) => {
    expect(conversion(html).elapsedMs).toBeLessThan(LONGEST_MS)
  })

  it('keeps its size in proportion to that of the page', () => {
    const spans = conversion(
      `<table>${repeated('<tr><th colspan=1000 rowspan=65534>x</th><td>y</td></tr>', 1_000)}</table>`,
    )
    expect(spans.markdown.length).toBeLessThan(200_000)
    const quotes = conversion(repeated('<blockquote>', 500) + repeated('<p>x</p>', 1_000))
    expect(quotes.markdown.length).toBeLessThan(200_000)
    const nested = conversion(repeated('<table><tr><th rowspan=2>a</th><td rowspan=2>', 100) + 'x')
    expect(nested.markdown.length).toBeLessThan(10_000)
  })

  it.each(['b', 'div', 'span', 'sub', 'a', 'li', 'blockquote', 'td', 'q', 'h2'])(
    'keeps the text below 10,000 nested <%s>',
    (tag) => {
      expect(conversion(`${repeated(`<${tag} href="/x">`, 10_000)}word`).markdown).toContain('word')
    },
  )
})
