import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { type PdfObject, pdfOf, pdfOfObjects, textAt } from '../../../../test/support/pdf-files.js'
import { loadPdfjs } from './pdfjs.js'
import { readPdf } from './read-pdf.js'

const read = async (bytes: Uint8Array) =>
  readPdf({ bytes, contentType: '', name: '', baseUrl: '' }, { pages: 50, decodedBytes: 1_000_000 })

type PageViewport = ReturnType<Sheet['getViewport']>
type Sheet = Awaited<
  ReturnType<Awaited<ReturnType<Awaited<ReturnType<typeof loadPdfjs>>['getDocument']>['promise']>['getPage']>
>

const lines = (number: number): string =>
  ['It begins here and', `is page ${number} of them.`].map((text, at) => textAt(100, 700 - 14 * at, text)).join(' ')
const textOf = (number: number): string => `It begins here and is page ${number} of them.`
const pages = (count: number): Uint8Array =>
  pdfOf({ pages: Array.from({ length: count }, (_, at) => ({ content: `${lines(at + 1)} 100 600 m 300 600 l S` })) })

/** What the library's pages have in common. */
async function sheetPrototype(): Promise<Sheet> {
  const task = (await loadPdfjs()).getDocument({ data: new Uint8Array(pages(1)) })
  const prototype = Object.getPrototypeOf(await (await task.promise).getPage(1)) as Sheet
  await task.destroy()
  return prototype
}

/** From now on, looking at this page fails. */
async function failAtPage(number: number, error: Error): Promise<void> {
  const prototype = await sheetPrototype()
  const getViewport = Reflect.get(prototype, 'getViewport') as (this: Sheet, ...given: unknown[]) => PageViewport
  jest.spyOn(prototype, 'getViewport').mockImplementation(function (this: Sheet, options) {
    if (this.pageNumber === number) throw error
    return getViewport.call(this, options)
  })
}

afterEach(() => {
  jest.restoreAllMocks()
})

describe('A page of a PDF that cannot be read', () => {
  it('is named where the library finds no page', async () => {
    const font = '<< /F1 5 0 R >>'
    const objects = new Map<number, PdfObject>([
      [1, { text: '<< /Type /Catalog /Pages 2 0 R >>' }],
      [2, { text: '<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 2 /MediaBox [0 0 600 800] >>' }],
      [3, { text: `<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font ${font} >> >>` }],
      [4, { text: '<< >>', stream: lines(1) }],
      [5, { text: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>' }],
      [6, { text: '7' }],
    ])
    const { markdown } = await read(pdfOfObjects(objects, '/Root 1 0 R'))
    expect(markdown).toBe(`${textOf(1)}\n\n<!-- page 2 cannot be read -->\n`)
  })

  it.each([
    [1, `<!-- page 1 cannot be read -->\n\n<!-- page 2 -->\n\n${textOf(2)}\n\n<!-- page 3 -->\n\n${textOf(3)}\n`],
    [2, `${textOf(1)}\n\n<!-- page 2 cannot be read -->\n\n<!-- page 3 -->\n\n${textOf(3)}\n`],
    [3, `${textOf(1)}\n\n<!-- page 2 -->\n\n${textOf(2)}\n\n<!-- page 3 cannot be read -->\n`],
  ])('is named in its place: page %d of 3', async (number, markdown) => {
    await failAtPage(number, new TypeError('no such thing'))
    expect(await read(pages(3))).toMatchObject({ markdown, pages: 3 })
  })

  it('is no page for want of memory: then the document is not read', async () => {
    const error = new RangeError('Array buffer allocation failed')
    await failAtPage(1, error)
    await expect(read(pages(2))).rejects.toBe(error)
  })
})

describe('The drawings of a PDF', () => {
  it('are left out from where they have taken too long, which the text says', async () => {
    let user = 0
    jest.spyOn(process, 'cpuUsage').mockImplementation(() => ({ user: (user += 7_000_000), system: 0 }))
    const { markdown } = await read(pages(2))
    expect(markdown).toContain(
      `${textOf(1)}\n\n<!-- from page 2 on drawn lines are not read: tables may be missing -->\n\n<!-- page 2 -->\n\n${textOf(2)}`,
    )
    expect(markdown.split('drawn lines')).toHaveLength(2)
  })
})
