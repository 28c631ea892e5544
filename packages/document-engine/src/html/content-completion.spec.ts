import { describe, expect, it } from '@jest/globals'
import { markedTexts, traitsOf } from '../../../../test/support/page-texts.js'
import { completeParts } from './content-rules.js'

/** Texts that are chosen after completion; before it, those that begin with a plus are. */
function completed(html: string): string[] {
  const traits = traitsOf(html)
  const chosen = traits.page.blocks.map(({ text }) => text.startsWith('+'))
  completeParts(traits, chosen)
  return markedTexts(traits, chosen)
}

const before = '<p>+before</p>'
const after = '<p>+after</p>'
const table = '<table><tr><td>1<td>2<tr><td>3<td>4</table>'
const all = ['+before', '1', '2', '3', '4', '+after']
const none = ['+before', '+after']

describe('parts of the content that belong together', () => {
  it.each([
    ['a table of data', `${before}${table}${after}`, all],
    ['a program', `${before}<pre>1<br><br>2</pre>${after}`, ['+before', '1', '2', '+after']],
    [
      'a table beside the chosen text in what the page calls its article',
      `<article><div>${before}${after}</div>${table}</article>`,
      ['+before', '+after', '1', '2', '3', '4'],
    ],
    ['no table outside of it', `<div>${before}${after}</div>${table}`, none],
    ['no table of links', `${before}${table.replaceAll(/\d/g, '<a href=x>$&</a>')}${after}`, none],
    ['no table of two cells', `${before}<table><tr><td>1<td>2</table>${after}`, none],
    ['no table that lays out text', `${before}${table.replaceAll(/\d/g, (digit) => digit.repeat(300))}${after}`, none],
    ['no table of a form', `${before}<form>${table}</form>${after}`, none],
    ['no table among what is related', `${before}<div class=related-posts>${table}</div>${after}`, none],
    ['no hidden table', `${before}<div hidden>${table}</div>${after}`, none],
    ['nothing where nothing is chosen', table, []],
  ])('take in %s', (_what, html, expected) => {
    expect(completed(html)).toEqual(expected)
  })
})
