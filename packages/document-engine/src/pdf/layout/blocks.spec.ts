import { describe, expect, it } from '@jest/globals'
import { markdownOf, proseLines } from '../../../../../test/support/pdf-pages.js'

const LOOK = { width: 400 }

describe('paragraphs of a PDF', () => {
  it('are re-flowed from their lines', () => {
    expect(markdownOf((page) => page.lines(['The first line of it', 'and the second one.'], 50, 100, LOOK))).toBe(
      'The first line of it and the second one.\n',
    )
  })

  it('are empty for pages without text', () => {
    expect(markdownOf((page) => page.text('  ', 50, 100))).toBe('')
  })

  it('end where more white space stands below a line', () => {
    const markdown = markdownOf((page) => {
      page.lines(['One line', 'of the first.'], 50, 100, LOOK).lines(['One line', 'of the second.'], 50, 132, LOOK)
    })
    expect(markdown).toBe('One line of the first.\n\nOne line of the second.\n')
  })

  it('begin with an indented line where no white space parts them', () => {
    const markdown = markdownOf((page) => {
      page.lines(['One line', 'of the first'], 50, 100, LOOK).text('Second begins', 65, 124, { width: 385 })
      page.text('and goes on', 50, 136, LOOK)
    })
    expect(markdown).toBe('One line of the first\n\nSecond begins and goes on\n')
  })

  it('end at a line with room for the next word', () => {
    const markdown = markdownOf((page) => {
      page.text('A long line', 50, 100, LOOK).text('ends here.', 50, 112, { width: 150 })
      page.text('The next one', 50, 124, LOOK)
    })
    expect(markdown).toBe('A long line ends here.\n\nThe next one\n')
  })

  it('join words broken at line ends, at hyphens and at soft hyphens', () => {
    const texts = [
      'This is a contin-',
      'uation of the par\u00ad',
      'agraph about Anglo-',
      'Saxon in 1990-',
      '1995 here.',
    ]
    expect(markdownOf((page) => page.lines(texts, 50, 100, LOOK))).toBe(
      'This is a continuation of the paragraph about Anglo-Saxon in 1990-1995 here.\n',
    )
  })

  it('keep the hyphen of a compound that the document writes with one elsewhere', () => {
    const texts = [
      'A long-term plan is',
      'better than a long-',
      'term one, said the re-',
      'port, and the report is right.',
    ]
    expect(markdownOf((page) => page.lines(texts, 50, 100, LOOK))).toBe(
      'A long-term plan is better than a long-term one, said the report, and the report is right.\n',
    )
  })

  it('put blanks where gaps are as wide as one, and none between kerned pieces', () => {
    const markdown = markdownOf((page) => {
      page.text('A', 50, 100, { width: 7 }).text('V', 56.5, 100, { width: 7 }).text('W', 64, 100, { width: 9 })
      page.text('ord', 73.4, 100, { width: 15 }).text('next', 91, 100, { width: 20 })
    })
    expect(markdown).toBe('AVWord next\n')
  })

  it('set no blanks between lines of Chinese and Japanese', () => {
    const texts = ['这是第一行文字', '第二行文字，', '結束。']
    expect(markdownOf((page) => page.lines(texts, 50, 100, { width: 400 }))).toBe('这是第一行文字第二行文字，結束。\n')
  })

  it('keep right-to-left words in logical order, numbers and all', () => {
    const markdown = markdownOf((page) => {
      page.text('שלום', 200, 100, { width: 20 }).text('עולם', 175, 100, { width: 20 })
      page.text('12', 148, 100, { width: 10 }).text('34', 162, 100, { width: 10 })
    })
    expect(markdown).toBe('שלום עולם 12 34\n')
  })

  it('take a drop cap as the first letter of their first word', () => {
    const markdown = markdownOf((page) => {
      page.text('O', 50, 122, { fontSize: 32, width: 20 }).lines(['nce upon a', 'time there'], 72, 110, { width: 378 })
      page.lines(['was a third', 'and a fourth line'], 50, 134, LOOK)
    })
    expect(markdown).toBe('Once upon a time there was a third and a fourth line\n')
  })

  it('run on over the break of a page, whose marker stands before the first block that begins there', () => {
    const markdown = markdownOf(
      (page) => page.lines(proseLines(30, 70), 50, 80, { width: 400 }),
      (page) => {
        page.lines(['and this is how', 'it ends.'], 50, 80, { width: 400 }).text('Something new.', 50, 130)
      },
    )
    expect(markdown).toMatch(/ and this is how it ends\.\n\n<!-- page 2 -->\n\nSomething new\.\n$/)
  })
})
