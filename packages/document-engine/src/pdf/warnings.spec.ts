import { describe, expect, it } from '@jest/globals'
import { pdfOf, textAt } from '../../../../test/support/pdf-files.js'
import { readPdf } from './read-pdf.js'
import { pdfWarnings } from './warnings.js'

const LIMITS = { pages: 50, decodedBytes: 1_000_000 }
const INLINE = 'BI /W 1 /H 1 /BPC 8 /CS /G ID \u0080 EI'
const picture = (width: number, height: number, x = 50, y = 50) => `q ${width} 0 0 ${height} ${x} ${y} cm ${INLINE} Q `
const TEXT = textAt(100, 700, 'A page of text')

async function warningsOf(contents: readonly string[], resources?: string) {
  const bytes = pdfOf({ pages: contents.map((content) => ({ content })), ...(resources && { resources }) })
  const input = { bytes, contentType: 'application/pdf', name: '', baseUrl: '' }
  return (await readPdf(input, LIMITS)).metadata.warnings
}

describe('the warnings of a PDF', () => {
  it('are none for text, lines, icons, empty pages and the background of a slide', async () => {
    const lines = 'q 2 0 0 2 0 0 cm 50 50 m 200 50 l S Q 0.5 g 100 100 200 200 re f '
    expect(await warningsOf([TEXT + lines, picture(20, 20) + TEXT, '', picture(600, 800, 0, 0) + TEXT])).toEqual([])
  })

  it('name the pages that are pictures only', async () => {
    const bare = `500 0 0 700 50 50 cm ${INLINE}`
    expect(await warningsOf([TEXT, picture(500, 700), bare])).toEqual([
      {
        code: 'pages_without_text',
        message: '2 pages without text: text in pictures is not read (no OCR).',
        pages: [2, 3],
      },
    ])
  })

  it('count the pictures beside text, but not those at the same place on many pages', async () => {
    const letterhead = picture(100, 50, 450, 720) + TEXT
    const two = `${letterhead}${picture(200, 150)}/Span BMC ${picture(100, 80, 300, 50)} EMC`
    expect(await warningsOf([two, letterhead, `${letterhead}${picture(60, 60)}`])).toEqual([
      { code: 'pictures_dropped', message: '3 pictures without a description on 2 pages.', pages: [1, 3] },
    ])
  })

  it('name the pages whose fonts do not say what their characters are, and refuse a file of nothing else', async () => {
    const map = '1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <20> <7e> <e100> endbfrange'
    const helvetica = '/Type /Font /Subtype /Type1 /BaseFont /Helvetica'
    const font = `/F1 << ${helvetica} >> /F2 << ${helvetica} /ToUnicode 100 0 R >>`
    const glyphs = textAt(100, 600, 'Thirty characters without meaning', 12, 'F2')
    const objects = new Map([[100, { text: '<< >>', stream: map }]])
    const read = (contents: readonly string[]) => {
      const bytes = pdfOf({
        pages: contents.map((content) => ({ content })),
        resources: `/Font << ${font} >>`,
        objects,
      })
      return readPdf({ bytes, contentType: '', name: '', baseUrl: '' }, LIMITS)
    }
    expect((await read([TEXT, glyphs + TEXT])).metadata.warnings).toMatchObject([
      { code: 'fonts_unreadable', pages: [2] },
    ])
    await expect(read([glyphs])).rejects.toMatchObject({ fault: 'no_text', message: expect.stringMatching(/fonts/) })
  })

  it('name the pages that are broken, and those whose lines are not read', () => {
    const gaps = { isPicture: false, isUnreadable: false, isUndrawn: false, pictures: [] }
    const pages = new Map([
      [1, gaps],
      [2, undefined],
      [3, { ...gaps, isUndrawn: true }],
    ])
    expect(pdfWarnings(pages)).toEqual([
      { code: 'pages_unread', message: '1 page cannot be read: the file is broken there.', pages: [2] },
      { code: 'drawings_unread', message: '1 page whose drawn lines are not read: tables may be missing.', pages: [3] },
    ])
  })
})
