import { describe, expect, it } from '@jest/globals'
import { textAt } from '../../../../test/support/pdf-files.js'
import { onePage, placeOf, textsOf } from '../../../../test/support/read-pdf-pages.js'
import type { PdfPage } from './layout/pdf-page.js'

const LONG = 'A line of text that is long enough to be the body of the page.'

describe('where text stands', () => {
  it('counts from the upper left corner of the page, to the baseline', async () => {
    const page = await onePage(textAt(100, 700, 'Hello'))
    expect([page.number, page.width, page.height]).toEqual([1, 600, 800])
    expect(page.runs).toHaveLength(1)
    expect(page.runs[0]).toMatchObject({ text: 'Hello', fontSize: 12, font: 'Helvetica', isFixedPitch: false })
    expect(placeOf(page.runs[0])).toEqual([100, 100])
    expect(page.runs[0]?.width).toBeCloseTo(27.3, 0)
  })

  it('takes off the offset of a crop box', async () => {
    const content = textAt(150, 700, 'Hello')
    const page = await onePage({ content, entries: '/CropBox [50 100 550 750]' })
    expect([page.width, page.height]).toEqual([500, 650])
    expect(placeOf(page.runs[0])).toEqual([100, 50])
  })

  it('leaves out what stands outside the page', async () => {
    const page = await onePage(textAt(100, 700, 'Inside') + textAt(100, 900, 'Above') + textAt(-300, 700, 'Left'))
    expect(textsOf(page)).toEqual(['Inside'])
  })

  it('takes off the rotation of the page', async () => {
    const content = 'BT /F1 12 Tf 0 1 -1 0 100 700 Tm (Sideways) Tj ET'
    const page = await onePage({ content, entries: '/Rotate 90' })
    expect([page.width, page.height]).toEqual([800, 600])
    expect(page.runs[0]).toMatchObject({ text: 'Sideways', fontSize: 12 })
    expect(placeOf(page.runs[0])).toEqual([700, 100])
  })

  it('turns a page whose text runs upwards', async () => {
    const page = await onePage(`BT /F1 12 Tf 0 1 -1 0 100 200 Tm (${LONG}) Tj ET`)
    expect([page.width, page.height]).toEqual([800, 600])
    expect(placeOf(page.runs[0])).toEqual([200, 100])
  })

  it('leaves a stamp in the margin and a tilted watermark out', async () => {
    const stamp = 'BT /F1 20 Tf 0 1 -1 0 30 200 Tm (arXiv stamp) Tj ET '
    const watermark = 'BT /F1 60 Tf 0.7 0.7 -0.7 0.7 100 200 Tm (DRAFT) Tj ET '
    const page = await onePage(stamp + watermark + textAt(100, 700, LONG))
    expect(textsOf(page)).toEqual([LONG])
  })

  it('keeps a large text across the page below the rest', async () => {
    const lines = (count: number, operator: (index: number) => string) =>
      Array.from({ length: count }, (_, index) => operator(index)).join('')
    const upright = lines(12, (index) => textAt(100, 700 - 14 * index, LONG))
    const across = lines(8, (index) => `BT /F1 12 Tf 0 1 -1 0 ${300 + 14 * index} 100 Tm (${LONG}) Tj ET `)
    const page = await onePage(upright + across)
    expect(page.runs).toHaveLength(20)
    expect(page.height).toBe(800 + 600)
    expect(page.runs.slice(12).every((run) => run.y > 800)).toBe(true)
  })

  it('applies the matrices of the page and of its forms', async () => {
    const content = 'q 1 0 0 1 50 0 cm /X1 Do Q'
    const objects = new Map([
      [
        100,
        {
          text: '<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Matrix [2 0 0 2 0 0] >>',
          stream: textAt(20, 300, 'In a form'),
        },
      ],
    ])
    const resources =
      '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> /XObject << /X1 100 0 R >>'
    const page = await onePage(content, { objects, resources })
    expect(page.runs[0]).toMatchObject({ text: 'In a form', fontSize: 24 })
    expect(placeOf(page.runs[0])).toEqual([90, 200])
  })
})

describe('lines of a page', () => {
  const rounded = (page: PdfPage) =>
    page.rules.map(({ x1, y1, x2, y2 }) => [x1, y1, x2, y2].map((value) => Math.round(value)))

  it('are the straight strokes and the thin filled boxes, under the matrix in force', async () => {
    const stroke = '100 700 m 300 700 l S '
    const box = 'q 2 0 0 2 0 0 cm 50 300 100 0.5 re f Q '
    const column = '400 500 0.7 100 re f '
    const page = await onePage(`${stroke}${box}${column}`)
    expect(rounded(page)).toEqual([
      [100, 100, 300, 100],
      [100, 200, 300, 200],
      [400, 200, 400, 300],
    ])
  })

  it('are joined from their dashes and from cell to cell', async () => {
    const dashes = Array.from({ length: 20 }, (_, index) => `${100 + 5 * index} 700 m ${103 + 5 * index} 700 l S `)
    const page = await onePage(dashes.join(''))
    expect(rounded(page)).toEqual([[100, 100, 198, 100]])
  })

  it('do not come from slanted strokes, areas, clips, curves or dots', async () => {
    const page = await onePage(
      '100 700 m 300 500 l S 100 100 200 200 re f 100 400 200 0.5 re W n 100 50 m 200 50 200 60 300 50 c S 10 10 1 1 re f',
    )
    expect(page.rules).toEqual([])
  })

  it('turn with the page', async () => {
    const text = `BT /F1 12 Tf 0 1 -1 0 100 200 Tm (${LONG}) Tj ET `
    const page = await onePage(`${text} 110 200 m 110 500 l S`)
    expect(rounded(page)).toEqual([[200, 110, 500, 110]])
  })
})

describe('annotations', () => {
  it('give the places of links to the web and of mail, line by line', async () => {
    const link = (uri: string, entries = '') =>
      `<< /Type /Annot /Subtype /Link /Rect [100 690 200 710] /A << /S /URI /URI (${uri}) >> ${entries} >> `
    const twoLines = '/QuadPoints [100 710 150 710 100 700 150 700 110 695 140 695 110 690 140 690]'
    const page = await onePage({
      content: textAt(100, 700, 'Links'),
      entries: `/Annots [
        ${link('https://example.org/a?b=1')} ${link('mailto:me@example.org')}
        ${link('javascript:alert(1)')} ${link('file:///etc/passwd')} ${link('http://two.example/', twoLines)}]`,
    })
    expect(page.links.map(({ url }) => url)).toEqual([
      'https://example.org/a?b=1',
      'mailto:me@example.org',
      'http://two.example/',
      'http://two.example/',
    ])
    expect(page.links[0]).toMatchObject({ x: 100, y: 90, width: 100, height: 20 })
    expect(page.links[2]).toMatchObject({ x: 100, y: 90, width: 50, height: 10 })
  })

  it('give what was filled into a form, but no passwords', async () => {
    const field = (entries: string) => `<< /Type /Annot /Subtype /Widget /FT /Tx /F 4 /DA (/F1 10 Tf) ${entries} >>`
    const page = await onePage(
      {
        content: textAt(100, 700, 'Name:'),
        entries: `/Annots [${field('/T (name) /V (Ada Lovelace) /Rect [150 695 350 711]')} ${field('/T (secret) /Ff 8192 /V (hunter2) /Rect [150 600 350 611]')}]`,
      },
      { catalogEntries: '/AcroForm << /Fields [] /DA (/F1 10 Tf) >>' },
    )
    expect(textsOf(page)).toEqual(['Name:', 'Ada Lovelace'])
    expect(page.runs[1]?.y).toBeCloseTo(100, -1)
  })
})
