import { deflateSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import PDFDocument from 'pdfkit'
import { type PdfObject, pdfOf, pdfOfObjects, textAt } from '../../../../test/support/pdf-files.js'
import type { EngineLimits } from '../model/document.js'
import { readPdf } from './read-pdf.js'

const LIMITS: EngineLimits = { pages: 50, decodedBytes: 1_000_000 }

function read(bytes: Uint8Array, limits = LIMITS) {
  return readPdf({ bytes, contentType: 'application/pdf', name: '', baseUrl: '' }, limits)
}

async function faultOf(bytes: Uint8Array, limits = LIMITS): Promise<unknown> {
  return read(bytes, limits).then(
    () => 'none',
    (error: unknown) => (error instanceof Error && 'fault' in error ? error.fault : error),
  )
}

async function made(options: PDFKit.PDFDocumentOptions, draw: (document: PDFKit.PDFDocument) => void): Promise<Buffer> {
  const document = new PDFDocument(options)
  const parts: Buffer[] = []
  document.on('data', (part: Buffer) => parts.push(part))
  const ended = new Promise((resolve) => document.on('end', resolve))
  draw(document)
  document.end()
  await ended
  return Buffer.concat(parts)
}

const OBJECTS_OF_ONE_PAGE: [number, PdfObject][] = [
  [1, { text: '<< /Type /Catalog /Pages 2 0 R >>' }],
  [2, { text: '<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 600 800] >>' }],
  [3, { text: '<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>' }],
  [4, { text: '<< >>', stream: textAt(100, 700, 'Still here') }],
  [5, { text: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>' }],
]

describe('readPdf', () => {
  it('gives text, pages and metadata, and no HTML', async () => {
    const bytes = await made(
      { info: { Title: 'On Kettles', Subject: 'About tea', Keywords: 'kettle, tea' } },
      (document) => {
        document.text('Water boils in a kettle.').addPage().text('Tea follows on the second page.')
      },
    )
    const output = await read(bytes)
    expect(output).toMatchObject({ kind: 'pdf', html: '', pages: 2 })
    expect(output.metadata).toEqual({
      title: 'On Kettles',
      description: 'About tea',
      keywords: 'kettle, tea',
      siteName: '',
      favicon: '',
    })
    expect(output.markdown).toContain('Water boils in a kettle.')
    expect(output.markdown).toContain('<!-- page 2 -->')
    expect(output.markdown).toContain('Tea follows on the second page.')
  })

  it('leaves the bytes to the caller as they were', async () => {
    const bytes = new Uint8Array(pdfOf({ pages: [{ content: textAt(100, 700, 'Hello') }] }))
    const before = new Uint8Array(bytes)
    await read(bytes)
    expect(bytes).toEqual(before)
  })

  it('reads links that stand against the address of the document', async () => {
    const entries = '/Annots [<< /Type /Annot /Subtype /Link /Rect [95 690 140 715] /A << /S /URI /URI (b.html) >> >>]'
    const bytes = pdfOf({ pages: [{ content: textAt(100, 700, 'Next'), entries }] })
    const input = { bytes, contentType: '', name: '', baseUrl: 'https://example.org/docs/a.pdf' }
    expect((await readPdf(input, LIMITS)).markdown).toContain('[Next](https://example.org/docs/b.html)')
  })

  it('reads streams that are compressed twice', async () => {
    const content = deflateSync(deflateSync(textAt(100, 700, 'Twice compressed')))
    const bytes = pdfOf({ pages: [{ content, streamEntries: '/Filter [/FlateDecode /FlateDecode]' }] })
    expect((await read(bytes)).markdown).toContain('Twice compressed')
  })

  it('reads an encrypted file that opens without a password, and says of another that it needs one', async () => {
    const draw = (document: PDFKit.PDFDocument) => void document.text('For owners only')
    const open = await made({ ownerPassword: 'owner', permissions: { copying: false } }, draw)
    expect((await read(open)).markdown).toContain('For owners only')
    for (const pdfVersion of ['1.4', '1.7', '1.7ext3'] as const) {
      expect(await faultOf(await made({ userPassword: 'secret', ownerPassword: 'owner', pdfVersion }, draw))).toBe(
        'encrypted',
      )
    }
  })

  it('says of pages without text that there is none, unless another page has text', async () => {
    const image = { content: 'q 500 0 0 700 50 50 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \u0080 EI Q' }
    await expect(read(pdfOf({ pages: [image, image] }))).rejects.toMatchObject({
      fault: 'no_text',
      message: expect.stringMatching(/images only.*OCR/),
    })
    const mixed = await read(pdfOf({ pages: [image, { content: textAt(100, 700, 'Caption') }] }))
    expect(mixed).toMatchObject({ pages: 2, markdown: expect.stringContaining('Caption') })
  })
})

describe('readPdf of files that are not what they say', () => {
  it('refuses more pages than the limit, and reads as many', async () => {
    const page = { content: textAt(100, 700, 'Page') }
    const pages = (count: number) => pdfOf({ pages: Array.from({ length: count }, () => page) })
    expect(await faultOf(pages(6), { ...LIMITS, pages: 5 })).toBe('too_large')
    expect(await faultOf(pages(5), { ...LIMITS, pages: 5 })).toBe('none')
  })

  it('refuses more text than the limit', async () => {
    const bytes = pdfOf({ pages: [{ content: textAt(100, 700, 'Twenty characters ..') }] })
    expect(await faultOf(bytes, { ...LIMITS, decodedBytes: 19 })).toBe('too_large')
    expect(await faultOf(bytes, { ...LIMITS, decodedBytes: 20 })).toBe('none')
  })

  it('counts the pages that are there when the page tree lies', async () => {
    const objects = new Map(OBJECTS_OF_ONE_PAGE)
    objects.set(2, { text: '<< /Type /Pages /Kids [3 0 R] /Count 200000 /MediaBox [0 0 600 800] >>' })
    const output = await read(pdfOfObjects(objects, '/Root 1 0 R'))
    expect(output).toMatchObject({ pages: 1, markdown: expect.stringContaining('Still here') })
  })

  it('ends when the page tree runs in circles', async () => {
    const objects = new Map(OBJECTS_OF_ONE_PAGE)
    objects.set(2, { text: '<< /Type /Pages /Kids [6 0 R 3 0 R] /Count 2 /MediaBox [0 0 600 800] >>' })
    objects.set(6, { text: '<< /Type /Pages /Kids [2 0 R] /Count 1 /Parent 2 0 R >>' })
    expect(await faultOf(pdfOfObjects(objects, '/Root 1 0 R'))).toBe('none')
  })

  it('reads a file whose cross-reference table is damaged, but not one that ends before its trailer', async () => {
    const bytes = Buffer.from(pdfOfObjects(new Map(OBJECTS_OF_ONE_PAGE), '/Root 1 0 R'))
    const start = bytes.indexOf('xref')
    const damaged = Buffer.concat([bytes.subarray(0, start + 20), bytes.subarray(bytes.indexOf('trailer'))])
    expect((await read(damaged)).markdown).toContain('Still here')
    expect(await faultOf(bytes.subarray(0, start + 20))).toBe('broken')
  })

  it('reads the other pages when one is broken', async () => {
    const objects = new Map(OBJECTS_OF_ONE_PAGE)
    objects.set(2, { text: '<< /Type /Pages /Kids [7 0 R 3 0 R] /Count 2 /MediaBox [0 0 600 800] >>' })
    objects.set(7, { text: '<< /Type /Page /Parent 2 0 R /Contents 8 0 R /Resources 9 0 R /Rotate /Wrong >>' })
    objects.set(8, { text: '<< /Filter /FlateDecode >>', stream: 'not compressed at all' })
    expect((await read(pdfOfObjects(objects, '/Root 1 0 R'))).markdown).toContain('Still here')
  })

  it('says of rubbish that it is broken', async () => {
    expect(await faultOf(Buffer.from('%PDF-1.7\nand then nothing of the kind'))).toBe('broken')
    expect(await faultOf(new Uint8Array())).toBe('broken')
    expect(await faultOf(pdfOfObjects(new Map([[1, { text: '<< /Type /Catalog >>' }]]), '/Root 1 0 R'))).toBe('broken')
  })
})
