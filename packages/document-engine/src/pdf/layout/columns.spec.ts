import { describe, expect, it } from '@jest/globals'
import { markdownOf, proseLines } from '../../../../../test/support/pdf-pages.js'

const COLUMN = { width: 230 }
const THIRD = { width: 140 }

/** Where each word first stands. */
function order(markdown: string, words: readonly string[]): string[] {
  return [...words].sort((a, b) => markdown.indexOf(a) - markdown.indexOf(b))
}

describe('columns of a PDF', () => {
  it('are read one after the other, below a title over both', () => {
    const markdown = markdownOf((page) => {
      page.text('A title over both of the columns here', 120, 60, { fontSize: 18 })
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['right', ...proseLines(20, 40, 3)], 310, 100, COLUMN)
    })
    expect(order(markdown, ['Left', 'right', 'title'])).toEqual(['title', 'Left', 'right'])
    expect(markdown.match(/\n\n/g)).toHaveLength(1)
  })

  it('are three where there are three', () => {
    const markdown = markdownOf((page) => {
      for (const [index, word] of ['Alpha', 'beta', 'gamma'].entries()) {
        page.lines([word, ...proseLines(15, 24, index)], 40 + index * 175, 100, THIRD)
      }
    })
    expect(order(markdown, ['gamma', 'beta', 'Alpha'])).toEqual(['Alpha', 'beta', 'gamma'])
    expect(markdown).not.toContain('|')
  })

  it('begin anew below a line over both', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Aaa', ...proseLines(8, 40)], 50, 100, COLUMN)
        .lines(['bbb', ...proseLines(8, 40, 3)], 310, 100, COLUMN)
      page.text('Across the whole page and more', 50, 230, { width: 490, fontSize: 14 })
      page
        .lines(['Ccc', ...proseLines(8, 40)], 50, 260, COLUMN)
        .lines(['ddd', ...proseLines(8, 40, 3)], 310, 260, COLUMN)
    })
    expect(order(markdown, ['ddd', 'Ccc', 'Across', 'bbb', 'Aaa'])).toEqual(['Aaa', 'bbb', 'Across', 'Ccc', 'ddd'])
  })

  it('need not have their lines at one height', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['right', ...proseLines(20, 40, 3)], 310, 105, COLUMN)
    })
    expect(order(markdown, ['right', 'Left'])).toEqual(['Left', 'right'])
    expect(markdown.trim().split('\n')).toHaveLength(1)
  })

  it('may hold a table each', () => {
    const markdown = markdownOf((page) => {
      page
        .lines(['Left', ...proseLines(20, 40)], 50, 100, COLUMN)
        .lines(['Right', ...proseLines(8, 40, 3)], 310, 100, COLUMN)
      page
        .grid([310, 400, 540], [220, 240, 260])
        .row(['Name', 'Text'], [315, 405], 234)
        .row(['Pipe', 'new'], [315, 405], 254)
    })
    expect(markdown).toMatch(/^Left [^|]+\n\n\| Name \| Text \|\n\| --- \| --- \|\n\| Pipe \| new \|\n$/)
    expect(order(markdown, ['Name', 'Right', 'Left'])).toEqual(['Left', 'Right', 'Name'])
  })
})
