import { describe, expect, it } from '@jest/globals'
import { type PageMaker, markdownOf, proseLines } from '../../../../../test/support/pdf-pages.js'

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
