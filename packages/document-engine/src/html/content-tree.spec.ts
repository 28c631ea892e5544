import { describe, expect, it } from '@jest/globals'
import { contentTree } from './content-tree.js'
import { readTree } from './html-parser.js'
import { writeHtml } from './html-writer.js'
import { textBlocks } from './text-blocks.js'

/** What is left when blocks that begin with a plus are chosen. */
function left(html: string): string {
  const page = textBlocks(readTree(html).body)
  const chosen = page.blocks.map(({ text }) => text.startsWith('+'))
  return writeHtml(contentTree(page, chosen), '')
}

describe('the tree of the content', () => {
  it.each([
    ['chosen blocks with what holds them', '<ul><li>+a<li>b<li>+c</ul><p>d</p>', '<ul><li>+a</li><li>+c</li></ul>'],
    ['text beside blocks', '<blockquote>+a<p>b</p>c</blockquote>', '<blockquote>+a</blockquote>'],
    ['marks and breaks in the text', '<p>+a <b>b</b><br>c</p>', '<p>+a <b>b</b><br>c</p>'],
    [
      'cells without content, for those after them',
      '<table><tr><td><td>+a<tr><td>b</table>',
      '<table><tr><td></td><td>+a</td></tr></table>',
    ],
    ['all of a piece of code', '<pre>+a<br><br>b</pre>', '<pre>+a<br><br>b</pre>'],
    ['nothing when nothing is chosen', '<div><p>a</p><br></div>', ''],
  ])('holds %s', (_what, html, expected) => {
    expect(left(html)).toBe(expected)
  })

  const image = '<img src="i.png" alt="">'
  it.each([
    ['in a chosen block', `<p>+a ${image}</p>`, true],
    ['in a block that is not', `<p>a ${image}</p><p>+b</p>`, false],
    ['between two chosen blocks', `<section><p>+a</p></section>${image}<section><p>+b</p></section>`, true],
    ['beside a chosen block', `<div><p>+a</p>${image}</div><p>b</p>`, true],
    [
      'far from the chosen block before it',
      `<main><div><div><p>+a</p></div></div></main><aside><div>${image}</div><p>b</p></aside>`,
      false,
    ],
    ['between two others', `<p>a</p>${image}<p>b</p><p>+c</p>`, false],
  ])('decides about a picture %s', (_what, html, expected) => {
    expect(left(html).includes('<img')).toBe(expected)
  })

  it('keeps the sizes that a picture comes in', () => {
    expect(left('<p>+a <picture><source srcset="l.png 2x"><img alt=x></picture></p>')).toContain(
      '<img src="l.png" alt="x">',
    )
  })

  it('leaves the page as it is', () => {
    const tree = readTree('<p>+a</p><p>b</p>')
    contentTree(textBlocks(tree.body), [true, false])
    expect(writeHtml(tree.body, '')).toBe('<p>+a</p><p>b</p>')
  })
})
