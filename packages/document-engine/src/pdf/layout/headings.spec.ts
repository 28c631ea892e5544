import { describe, expect, it } from '@jest/globals'
import { markdownOf, PageMaker, proseLines, type RunLook } from '../../../../../test/support/pdf-files.js'
import { pagesToMarkdown } from './pages-to-markdown.js'

const BOLD = { isBold: true, font: 'F2' }

function headingsOf(markdown: string): string[] {
  return markdown.split('\n').filter((line) => line.startsWith('#'))
}

/** Headings with prose between them. */
function withHeadings(headings: readonly (readonly [string, RunLook])[]): (page: PageMaker) => void {
  return (page) => {
    for (const [index, [text, look]] of headings.entries()) {
      page.text(text, 50, 60 + index * 90, look).lines(proseLines(4, 80, index), 50, 84 + index * 90, { width: 400 })
    }
  }
}

describe('headings of a PDF', () => {
  it('get their levels by size', () => {
    const markdown = markdownOf(
      withHeadings([
        ['The Title', { fontSize: 20 }],
        ['A chapter', { fontSize: 15, ...BOLD }],
        ['A section', { fontSize: 12, ...BOLD }],
        ['Another chapter', { fontSize: 15, ...BOLD }],
      ]),
    )
    expect(headingsOf(markdown)).toEqual(['# The Title', '## A chapter', '### A section', '## Another chapter'])
  })

  it('get their levels by number where the type is the same', () => {
    const markdown = markdownOf(
      withHeadings([
        ['The Title', { fontSize: 20 }],
        ['1 Beginning', BOLD],
        ['1.1 Detail', BOLD],
        ['2 End', BOLD],
      ]),
    )
    expect(headingsOf(markdown)).toEqual(['# The Title', '## 1 Beginning', '### 1.1 Detail', '## 2 End'])
  })

  it("follow the document's own table of contents, titles that come twice in their order", () => {
    const page = new PageMaker()
    withHeadings([
      ['The Title', { fontSize: 20 }],
      ['Notes', { fontSize: 13 }],
      ['Notes', { fontSize: 13 }],
    ])(page)
    const outline = [
      { title: 'Notes', level: 1 },
      { title: 'Notes', level: 2 },
    ]
    expect(headingsOf(pagesToMarkdown([page.page()], outline))).toEqual(['# The Title', '## Notes', '### Notes'])
  })

  it('are found when bold at the size of the text, and not marked bold again', () => {
    const markdown = markdownOf((page) => {
      page
        .text('Bold heading', 50, 80, BOLD)
        .lines(['Text that follows without', 'white space.'], 50, 92, { width: 400 })
    })
    expect(markdown).toBe('# Bold heading\n\nText that follows without white space.\n')
  })

  it('are not what begins a paragraph in bold', () => {
    const markdown = markdownOf((page) => {
      page.text('Note.', 50, 80, { ...BOLD, width: 25 }).text('This is text of a', 80, 80, { width: 370 })
      page.text('paragraph.', 50, 92)
    })
    expect(markdown).toBe('**Note.** This is text of a paragraph.\n')
  })

  it('are not captions, however bold', () => {
    const markdown = markdownOf((page) => page.text('Table 1: Things', 50, 80, BOLD).lines(proseLines(3, 80), 50, 110))
    expect(headingsOf(markdown)).toEqual([])
  })

  it('stand on one line though they take two on the page', () => {
    const markdown = markdownOf((page) => {
      page.lines(['A Long Title of', 'Two Lines'], 50, 80, { fontSize: 20 }, 24).lines(proseLines(4, 80), 50, 150)
    })
    expect(headingsOf(markdown)).toEqual(['# A Long Title of Two Lines'])
  })
})
