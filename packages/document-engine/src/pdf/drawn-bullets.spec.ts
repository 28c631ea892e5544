import { describe, expect, it } from '@jest/globals'
import { onePage, pdfOf, textAt, textsOf } from '../../../../test/support/pdf-files.js'
import { readPdf } from './read-pdf.js'

const dot = (x: number, y: number, paint = 'f') =>
  `${x} ${y} m ${x} ${y + 4} l ${x + 2} ${y + 4.5} ${x + 3} ${y + 4.5} ${x + 4} ${y + 4} c ${x + 4} ${y} l h ${paint} `

describe('bullets that are drawn, not written', () => {
  it('make items of the lines beside them', async () => {
    const content =
      textAt(100, 700, 'You need') +
      dot(110, 682) +
      textAt(124, 680, 'a kettle') +
      dot(130, 662, 'S') +
      textAt(144, 660, 'of iron') +
      dot(110, 642) +
      textAt(124, 640, 'water') +
      textAt(100, 610, 'and nothing else.')
    const { markdown } = await readPdf(
      { bytes: pdfOf({ pages: [{ content }] }), contentType: '', name: '', baseUrl: '' },
      { pages: 5, decodedBytes: 10_000 },
    )
    expect(markdown).toBe('You need\n\n- a kettle\n  - of iron\n- water\n\nand nothing else.\n')
  })

  it('are none within a line, away from text, at another height, of other sizes, or by the hundred', async () => {
    const line = textAt(100, 700, 'A line with') + textAt(180, 700, 'a dot')
    const others = `${dot(168, 702)}${dot(30, 702)}${dot(88, 715)}80 690 15 15 re f 85 700 1 1 re f `
    expect(textsOf(await onePage(line + others))).toEqual(['A line with', 'a dot'])
    const many = Array.from({ length: 400 }, (_, at) => dot(88 - (at % 10) / 10, 702)).join('')
    expect(textsOf(await onePage(line + many))).toEqual(['A line with', 'a dot'])
  })
})
