import { describe, expect, it } from '@jest/globals'
import { markdownOf } from '../../../../../test/support/pdf-pages.js'

describe('lists of a PDF', () => {
  it('are found by their bullets, with the lines that go on below the text', () => {
    const markdown = markdownOf((page) => {
      page.text('•', 50, 100).text('first item of', 62, 100, { width: 380 }).text('two lines', 62, 112)
      page.text('•', 50, 124).text('second item', 62, 124)
    })
    expect(markdown).toBe('- first item of two lines\n- second item\n')
  })

  it('are nested by where their marks stand, after a number by three blanks', () => {
    const markdown = markdownOf((page) => {
      page.text('1.', 50, 100).text('one', 65, 100).text('–', 65, 112).text('inner', 77, 112)
      page.text('–', 65, 124).text('another', 77, 124).text('2.', 50, 136).text('two', 65, 136)
    })
    expect(markdown).toBe('1. one\n   - inner\n   - another\n2. two\n')
  })

  it.each([
    ['1)', '2)'],
    ['(1)', '(2)'],
    ['a.', 'b.'],
    ['(a)', '(b)'],
    ['i)', 'ii)'],
  ])('are counted as %s and %s', (first, second) => {
    const markdown = markdownOf((page) => {
      page.text(first, 50, 100).text('one', 70, 100).text(second, 50, 112).text('two', 70, 112)
    })
    expect(markdown).toBe('1. one\n2. two\n')
  })

  it('are not lines of prose that begin with a number or a dash', () => {
    const markdown = markdownOf((page) => {
      page.lines(['This was in the year', '1998. It went on', '– as was said – for', 'years.'], 50, 100, { width: 400 })
    })
    expect(markdown).toBe('This was in the year 1998. It went on – as was said – for years.\n')
  })

  it('escape what would be a list but is a paragraph', () => {
    expect(markdownOf((page) => page.text('1998. A good year', 50, 100))).toBe('1998\\. A good year\n')
  })

  it('hold further paragraphs of an item', () => {
    const markdown = markdownOf((page) => {
      page.text('Intro that is long enough.', 50, 80, { width: 400 })
      page.text('•', 60, 100).text('first item.', 72, 100).text('More of it.', 72, 124).text('•', 60, 148)
      page.text('second item', 72, 148)
    })
    expect(markdown).toBe('Intro that is long enough.\n\n- first item.\n\n  More of it.\n\n- second item\n')
  })

  it('are made of tables of contents, without the dots', () => {
    const markdown = markdownOf((page) => {
      page.text('1 Start . . . . . . . . . . 2', 50, 100).text('1.1 More . . . . . . . . . . 3', 65, 112)
    })
    expect(markdown).toBe('- 1 Start … 2\n  - 1.1 More … 3\n')
  })
})
