import { describe, expect, it } from '@jest/globals'
import { markdownOf, proseLines } from '../../../../../test/support/pdf-files.js'

const XS = [50, 150, 250]
const FOUR_ROWS = [
  ['Item', 'Count', 'Kind'],
  ['Pipe', '12', 'new'],
  ['Valve', '7', 'old'],
  ['Filter', '101', 'a | b'],
]
const MARKDOWN =
  '| Item | Count | Kind |\n| --- | --- | --- |\n| Pipe | 12 | new |\n| Valve | 7 | old |\n| Filter | 101 | a \\| b |\n'

describe('tables of a PDF', () => {
  it('are read from a grid of rules', () => {
    const markdown = markdownOf((page) => {
      page.grid([45, 145, 245, 345], [90, 110, 130, 150, 170])
      for (const [index, row] of FOUR_ROWS.entries()) page.row(row, XS, 104 + index * 20)
    })
    expect(markdown).toBe(MARKDOWN)
  })

  it('are read from three horizontal rules', () => {
    const markdown = markdownOf((page) => {
      page.rule(45, 90, 345, 90).rule(45, 108, 345, 108).rule(45, 150, 345, 150)
      for (const [index, row] of FOUR_ROWS.entries()) page.row(row, XS, 104 + index * 14)
    })
    expect(markdown).toBe(MARKDOWN)
  })

  it('are read from aligned text without rules, between paragraphs', () => {
    const markdown = markdownOf((page) => {
      page.lines(proseLines(3, 80), 50, 40, { width: 400 })
      for (const [index, row] of FOUR_ROWS.entries()) page.row(row, XS, 104 + index * 14)
      page.lines(proseLines(3, 80), 50, 175, { width: 400 })
    })
    expect(markdown).toMatch(/^[a-z ]+\n\n(?:\|.+\n){5}\n[a-z ]+\n$/)
    expect(markdown).toContain(MARKDOWN)
  })

  it('keep cells of several lines together between rules', () => {
    const markdown = markdownOf((page) => {
      page.grid([45, 145, 345], [90, 110, 142])
      page.row(['Name', 'Text'], XS, 104).row(['Pipe', 'a remark of two'], XS, 124).text('lines', 150, 136)
    })
    expect(markdown).toBe('| Name | Text |\n| --- | --- |\n| Pipe | a remark of two lines |\n')
  })

  it('put the text of a spanning cell into its first one', () => {
    const markdown = markdownOf((page) => {
      page.grid([45, 145, 345], [110, 130, 150]).rule(45, 90, 345, 90).rule(45, 90, 45, 110).rule(345, 90, 345, 110)
      page.text('Both columns', 140, 104).row(['a', 'b'], XS, 124).row(['c', 'd'], XS, 144)
    })
    expect(markdown).toBe('| Both columns |  |\n| --- | --- |\n| a | b |\n| c | d |\n')
  })

  it('go on with a line that fills one cell only, without rules', () => {
    const markdown = markdownOf((page) => {
      page.row(['Name', 'Text'], XS, 100).row(['Pipe', 'a remark of two'], XS, 124).text('lines', 150, 136)
      page.row(['Valve', 'short'], XS, 160)
    })
    expect(markdown).toBe('| Name | Text |\n| --- | --- |\n| Pipe | a remark of two lines |\n| Valve | short |\n')
  })

  it('go on after the break of a page, their repeated head left out', () => {
    const head = FOUR_ROWS[0] ?? []
    const markdown = markdownOf(
      (page) => page.grid([45, 145, 245, 345], [90, 110, 130]).row(head, XS, 104).row(['Pipe', '12', 'new'], XS, 124),
      (page) => page.grid([45, 145, 245, 345], [90, 110, 130]).row(head, XS, 104).row(['Valve', '7', 'old'], XS, 124),
    )
    expect(markdown).toBe('| Item | Count | Kind |\n| --- | --- | --- |\n| Pipe | 12 | new |\n| Valve | 7 | old |\n')
  })

  it('are not made of a frame around a paragraph', () => {
    const markdown = markdownOf((page) =>
      page.grid([40, 460], [80, 130]).lines(['In a', 'frame.'], 50, 100, { width: 400 }),
    )
    expect(markdown).toBe('In a frame.\n')
  })

  it('are not made of justified lines with wide blanks', () => {
    const markdown = markdownOf((page) => {
      for (let line = 0; line < 4; line += 1)
        page.row(['word', 'word', 'word', 'word', 'word', 'word'], [50, 76, 102, 128, 154, 180], 100 + line * 12)
    })
    expect(markdown).not.toContain('|')
  })
})
