import { deflateSync } from 'node:zlib'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import PDFDocument from 'pdfkit'
import { runModule } from '../../../../test/support/module-process.js'
import { type PdfObject, pdfOf, pdfOfObjects, textAt } from '../../../../test/support/pdf-files.js'
import type { EngineLimits } from '../model/document.js'
import { loadPdfjs } from './pdfjs.js'
import { cleanText, outlineEntries, pdfMetadata, readPdf } from './read-pdf.js'

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
      language: '',
      warnings: [],
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

describe('The library of PDFs', () => {
  it('adds to the built-ins of the process and replaces none of them', () => {
    const engine = new URL('../../dist/engine.js', import.meta.url).href
    const script = `
      const { readFileSync } = await import('node:fs')
      const { readDocument } = await import(${JSON.stringify(engine)})
      const names = Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name))
      const look = () => new Map(names
        .flatMap((name) => [[name, globalThis[name]], [name + '.prototype', globalThis[name]?.prototype]])
        .flatMap(([name, object]) => object === null || !['object', 'function'].includes(typeof object) ? [] :
          [[name, object], ...Reflect.ownKeys(object).flatMap((key) => {
            const { value, get, set } = Object.getOwnPropertyDescriptor(object, key)
            return [['value', value], ['get', get], ['set', set]].map(([kind, is]) => [[name, String(key), kind].join(' '), is])
          })]))
      const before = look()
      await readDocument({ bytes: readFileSync(0), contentType: '', name: '', baseUrl: '' }, { pages: 5, decodedBytes: 1e6 })
      const after = look()
      const replaced = [...before].flatMap(([name, is]) => Object.is(after.get(name), is) ? [] : [name])
      console.log(JSON.stringify({ replaced, hasLooked: before.size > 1000, hasLoaded: 'pdfjsWorker' in globalThis }))`
    const replaced = runModule(script, { input: pages(1) })
    expect(replaced).toBe(`${JSON.stringify({ replaced: [], hasLooked: true, hasLoaded: true })}\n`)
  })
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

const titleOf = (title: unknown, xmpTitle?: string) =>
  pdfMetadata({ info: { Title: title }, xmp: { get: (name) => (name === 'dc:title' ? xmpTitle : undefined) } }).title

describe('pdfMetadata', () => {
  it.each([
    '',
    '  ',
    'Microsoft Word - report final.docx',
    'untitled',
    'Untitled-1',
    'paper.dvi',
    'Document1',
    '无标题',
    42,
  ])('prefers the title of XMP to %j', (title) => {
    expect(titleOf(title, 'A Real Title')).toBe('A Real Title')
    expect(titleOf(title)).toBe('')
  })

  it.each(['Untitled love letters', 'The Document', 'Node.js in Action', 'Titles and deeds'])('keeps %j', (title) => {
    expect(titleOf(title, 'Something else')).toBe(title)
  })

  it('takes one of two equal languages of XMP', () => {
    expect(titleOf('', 'Two ColumnsTwo Columns')).toBe('Two Columns')
    expect(titleOf('', 'bonbon')).toBe('bonbon')
  })

  it('gives subject and keywords, from XMP where the dictionary has none', () => {
    const xmp = new Map<string, unknown>([
      ['dc:description', 'Described'],
      ['dc:subject', ['tea', 'kettle']],
    ])
    expect(pdfMetadata({ info: {}, xmp })).toMatchObject({ description: 'Described', keywords: 'tea, kettle' })
    expect(pdfMetadata({ info: { Language: 'en-gb' }, xmp: null })).toMatchObject({ language: 'en-GB' })
    expect(pdfMetadata({ info: { Subject: 'Said', Keywords: 'a b' }, xmp })).toMatchObject({
      description: 'Said',
      keywords: 'a b',
    })
  })

  it('has empty strings where nothing is said', () => {
    expect(pdfMetadata({ info: undefined, xmp: null })).toEqual({
      title: '',
      description: '',
      keywords: '',
      siteName: '',
      favicon: '',
      language: '',
      warnings: [],
    })
  })

  it('makes one line of bounded length, without half characters', () => {
    expect(cleanText(' a\u0000b\n c ', 100)).toBe('ab c')
    expect(cleanText('x'.repeat(20), 10)).toBe(`${'x'.repeat(9)}…`)
    expect(cleanText(`${'x'.repeat(8)}😀yyyy`, 10)).toBe(`${'x'.repeat(8)}…`)
  })
})

describe('outlineEntries', () => {
  const node = (title: string, ...items: { title: string; items: never[] }[]) => ({ title, items })

  it('lists titles with their levels in the order of reading', () => {
    expect(outlineEntries([node('One', { title: ' One\none ', items: [] }), node(''), node('Two')])).toEqual([
      { title: 'One', level: 1 },
      { title: 'One one', level: 2 },
      { title: 'Two', level: 1 },
    ])
    expect(outlineEntries(null)).toEqual([])
  })

  it('is bounded in depth and in length', () => {
    interface Deep {
      title: string
      items: Deep[]
    }
    let deep: Deep = { title: 'deepest', items: [] }
    for (let level = 0; level < 1000; level += 1) deep = { title: 'deep', items: [deep] }
    expect(outlineEntries([deep])).toHaveLength(10)
    expect(outlineEntries(Array.from({ length: 9000 }, () => node('many')))).toHaveLength(5000)
  })
})
