import { describe, expect, it } from '@jest/globals'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/' }).trimEnd()
}

/** Rows of data cells; one that begins with a blank begins with attributes. */
function table(...rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => `<td${cell.startsWith(' ') ? cell : `>${cell}`}</td>`).join(''))
  return `<table>${cells.map((row) => `<tr>${row}</tr>`).join('')}</table>`
}

describe('Tables', () => {
  it.each([
    [
      'a header',
      '<table><thead><tr><th>A<th>B</thead><tbody><tr><td>1<td>2</tbody></table>',
      '| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['its first row for a header', table(['A', 'B'], ['1', '2']), '| A | B |\n| --- | --- |\n| 1 | 2 |'],
    [
      'no bold in the header',
      '<table><tr><th><b>A</b><th>B<tr><td><b>1</b><td>2</table>',
      '| A | B |\n| --- | --- |\n| **1** | 2 |',
    ],
    [
      'a caption',
      `<table><caption>C</caption><tr><td>A<td>B<tr><td>1<td>2</table>`,
      'C\n\n| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['pipes', table(['a|b', '<code>c|d</code>'], ['1', '2']), '| a\\|b | `c\\|d` |\n| --- | --- |\n| 1 | 2 |'],
    [
      'pipes behind backslashes',
      table(['a\\|b', '<code>\\|</code>'], ['1', '2']),
      '| a\\\\&#124;b | <code>&#92;&#124;</code> |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'bars in formulas',
      table(['<span class="math">$|x|$</span>', 'a'], ['1', '2']),
      '| $\\vert x\\vert $ | a |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'breaks and paragraphs',
      table(['a<br>b', '<p>c</p><p>d</p>'], ['1', '2']),
      '| a<br>b | c<br>d |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'lists',
      table(['A', 'B'], ['<ul><li>a<li>b</ul>', '<ol><li>c</ol>']),
      '| A | B |\n| --- | --- |\n| - a<br>- b | 1. c |',
    ],
    [
      'a cell over columns',
      table([' colspan="2">A', 'B'], ['1', '2', '3']),
      '| A | | B |\n| --- | --- | --- |\n| 1 | 2 | 3 |',
    ],
    [
      'a cell over rows',
      table(['A', 'B'], [' rowspan="2">x', '1'], ['2']),
      '| A | B |\n| --- | --- |\n| x | 1 |\n| x | 2 |',
    ],
    [
      'a cell over rows at the end',
      table(['A', 'B'], ['1', ' rowspan="2">x'], ['2']),
      '| A | B |\n| --- | --- |\n| 1 | x |\n| 2 | x |',
    ],
    [
      'a cell over all rows left',
      table(['A', 'B'], [' rowspan="0">x', '1'], ['2'], ['3']),
      '| A | B |\n| --- | --- |\n| x | 1 |\n| x | 2 |\n| x | 3 |',
    ],
    [
      'a cell over both',
      table(['A', 'B', 'C'], [' rowspan="2" colspan="2">x', '1'], ['2']),
      '| A | B | C |\n| --- | --- | --- |\n| x | | 1 |\n| x | | 2 |',
    ],
    ['ragged rows', table(['A', 'B'], ['1'], ['2', '3']), '| A | B |\n| --- | --- |\n| 1 | |\n| 2 | 3 |'],
    [
      'no empty rows and columns',
      table(['A', '', 'B'], ['', '', ''], ['1', '', '2']),
      '| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'alignment',
      '<table><tr><th align="right">A<th style="text-align: center">B<tr><td>1<td>2</table>',
      '| A | B |\n| ---: | :---: |\n| 1 | 2 |',
    ],
    [
      'links and pictures',
      table(['<a href="/x">a</a>', '<img src="/i.png">'], ['1', '2']),
      '| [a](https://example.org/x) | ![](https://example.org/i.png) |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['row headers', '<table><tr><th>A<td>1<tr><th>B<td>2</table>', '| A | 1 |\n| --- | --- |\n| B | 2 |'],
    [
      'code in cells',
      '<table><tr><th>A<th>B<tr><td><pre>x\ny</pre><td>1</table>',
      '| A | B |\n| --- | --- |\n| `x`<br>`y` | 1 |',
    ],
    [
      'tables in cells',
      `<table><tr><th>A<th>B<tr><td>${table(['x', 'y'], ['z', 'w'])}<td>1</table>`,
      '| A | B |\n| --- | --- |\n| x y<br>z w | 1 |',
    ],
  ])('have %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
  })
})

describe('Tables that lay out a page', () => {
  it.each([
    ['one column', table(['a'], ['b']), 'a\n\nb'],
    ['one row', table(['a', 'b']), 'a\n\nb'],
    ['a role that says so', `<table role="presentation"><tr><td>a<td>b<tr><td>c<td>d</table>`, 'a\n\nb\n\nc\n\nd'],
    [
      'tables within',
      table([table(['a', 'b'], ['c', 'd']), 'x'], ['y', 'z']),
      '| a | b |\n| --- | --- |\n| c | d |\n\nx\n\ny\n\nz',
    ],
    ['headings within', table(['<h2>a</h2>', 'b'], ['c', 'd']), '## a\n\nb\n\nc\n\nd'],
    ['nothing in them', table(['', ''], ['', '']), ''],
    ['one column with words', table(['a', ''], ['b', '']), 'a\n\nb'],
  ])('become blocks: %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
  })
})
