import type { LinkArea, PdfPage, Rule, TextRun } from '@multi-model-gateway/document-engine/pdf/layout/layout-model.js'
import { pagesToMarkdown } from '@multi-model-gateway/document-engine/pdf/layout/pages-to-markdown.js'
import { PageReader, settledPage } from '@multi-model-gateway/document-engine/pdf/page-reader.js'
import { loadPdfjs, pdfjsData } from '@multi-model-gateway/document-engine/pdf/pdfjs.js'

export type RunLook = Partial<Omit<TextRun, 'text' | 'x' | 'y'>>

/** Every character of the pages made here is half an em wide. */
export const ADVANCE_EM = 0.5

/** A page of 600 × 800 points, written piece by piece. */
export class PageMaker {
  private readonly runs: TextRun[] = []
  private readonly rules: Rule[] = []
  private readonly links: LinkArea[] = []

  constructor(private readonly number = 1) {}

  text(text: string, x: number, y: number, look: RunLook = {}): this {
    const fontSize = look.fontSize ?? 10
    const width = text.length * fontSize * ADVANCE_EM
    const plain = { fontSize, width, font: 'F1', isBold: false, isItalic: false, isFixedPitch: false }
    this.runs.push({ text, x, y, ...plain, ...look })
    return this
  }

  /** Lines below each other, `leading` apart. */
  lines(texts: readonly string[], x: number, y: number, look: RunLook = {}, leading = 12): this {
    for (const [index, text] of texts.entries()) this.text(text, x, y + index * leading, look)
    return this
  }

  /** Cells of one row, each at its x. */
  row(cells: readonly string[], xs: readonly number[], y: number, look: RunLook = {}): this {
    for (const [index, cell] of cells.entries()) if (cell !== '') this.text(cell, xs[index] ?? 0, y, look)
    return this
  }

  rule(x1: number, y1: number, x2: number, y2: number): this {
    this.rules.push({ x1, y1, x2, y2 })
    return this
  }

  grid(xs: readonly number[], ys: readonly number[]): this {
    for (const x of xs) this.rule(x, ys[0] ?? 0, x, ys.at(-1) ?? 0)
    for (const y of ys) this.rule(xs[0] ?? 0, y, xs.at(-1) ?? 0, y)
    return this
  }

  link(x: number, y: number, width: number, height: number, url: string): this {
    this.links.push({ x, y, width, height, url })
    return this
  }

  page(): PdfPage {
    return { number: this.number, width: 600, height: 800, runs: this.runs, rules: this.rules, links: this.links }
  }
}

/** Each page is written by its own function. */
export function markdownOf(...writers: readonly ((page: PageMaker) => unknown)[]): string {
  const pages = writers.map((write, index) => {
    const maker = new PageMaker(index + 1)
    write(maker)
    return maker.page()
  })
  return pagesToMarkdown(pages, [])
}

const FILLER = 'stone river paper cloud window garden candle market silver bridge'.split(' ')

/** Lines of prose without capitals, of about `characters` each, the same for the same `seed`; no line ends a sentence. */
export function proseLines(count: number, characters: number, seed = 0): string[] {
  let word = seed
  return Array.from({ length: count }, () => {
    let line = ''
    while (line.length < characters - 7) {
      word += 1
      line += `${line === '' ? '' : ' '}${FILLER[(word * 7 + seed) % FILLER.length] ?? ''}`
    }
    return line
  })
}

/** One indirect object: its text, and a stream behind it where it has one. `/Length` is added. */
export interface PdfObject {
  readonly text: string
  readonly stream?: Uint8Array | string
}

interface PdfPageSource {
  /** Operators of the content stream. */
  readonly content: string | Uint8Array
  /** Further entries of the page's dictionary: `/Rotate 90`, `/CropBox [...]`, `/Annots [...]`. */
  readonly entries?: string
  /** Entries of the stream's dictionary, such as its filters. */
  readonly streamEntries?: string
}

interface PdfSource {
  readonly pages: readonly PdfPageSource[]
  /** Contents of the resources dictionary of all pages. */
  readonly resources?: string
  readonly catalogEntries?: string
  /** Contents of the information dictionary. */
  readonly info?: string
  /** By number; from 100, below are the pages. */
  readonly objects?: ReadonlyMap<number, PdfObject>
}

const CATALOG = 1
const PAGE_TREE = 2
const INFO = 3
const HELVETICA = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'
const FIRST_PAGE = 10

/** A PDF of these pages, 600 × 800 points, whose font /F1 is Helvetica unless `resources` says otherwise. */
export function pdfOf(source: PdfSource): Uint8Array {
  const objects = new Map<number, PdfObject>(source.objects)
  const numbers = source.pages.map((_, index) => FIRST_PAGE + 2 * index)
  objects.set(CATALOG, { text: `<< /Type /Catalog /Pages ${PAGE_TREE} 0 R ${source.catalogEntries ?? ''} >>` })
  const kids = numbers.map((number) => `${number} 0 R`).join(' ')
  const resources = source.resources ?? `/Font << /F1 ${HELVETICA} >>`
  objects.set(PAGE_TREE, {
    text: `<< /Type /Pages /Kids [${kids}] /Count ${numbers.length} /MediaBox [0 0 600 800] /Resources << ${resources} >> >>`,
  })
  objects.set(INFO, { text: `<< ${source.info ?? ''} >>` })
  for (const [index, page] of source.pages.entries()) {
    const number = FIRST_PAGE + 2 * index
    const entries = `/Parent ${PAGE_TREE} 0 R /Contents ${number + 1} 0 R ${page.entries ?? ''}`
    objects.set(number, { text: `<< /Type /Page ${entries} >>` })
    objects.set(number + 1, { text: `<< ${page.streamEntries ?? ''} >>`, stream: page.content })
  }
  return pdfOfObjects(objects, `/Root ${CATALOG} 0 R /Info ${INFO} 0 R`)
}

/** A PDF of raw objects with a cross-reference table. */
export function pdfOfObjects(objects: ReadonlyMap<number, PdfObject>, trailer: string): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')]
  const offsets = new Map<number, number>()
  let length = parts[0]?.length ?? 0
  const add = (bytes: Uint8Array | string) => {
    const part = Buffer.from(bytes)
    parts.push(part)
    length += part.length
  }
  for (const [number, object] of objects) {
    offsets.set(number, length)
    add(`${number} 0 obj\n`)
    addObject(object, add)
    add('\nendobj\n')
  }
  const size = Math.max(...objects.keys()) + 1
  const start = length
  const rows = Array.from({ length: size }, (_, number) => {
    const offset = offsets.get(number)
    return offset === undefined ? '0000000000 65535 f \n' : `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  add(`xref\n0 ${size}\n${rows.join('')}trailer\n<< /Size ${size} ${trailer} >>\nstartxref\n${start}\n%%EOF\n`)
  return Buffer.concat(parts)
}

function addObject({ text, stream }: PdfObject, add: (bytes: Uint8Array | string) => void): void {
  if (stream === undefined) {
    add(text)
    return
  }
  const bytes = Buffer.from(stream)
  add(text.replace(/>>\s*$/, `/Length ${bytes.length} >>`))
  add('\nstream\n')
  add(bytes)
  add('\nendstream')
}

/** Operators that show one line of text at that place. */
export function textAt(x: number, y: number, text: string, size = 12, font = 'F1'): string {
  return `BT /${font} ${size} Tf ${x} ${y} Td (${text.replace(/[\\()]/g, '\\$&')}) Tj ET\n`
}

/** The pages of a PDF as the layout gets them. */
export async function pagesOf(bytes: Uint8Array): Promise<PdfPage[]> {
  const pdfjs = await loadPdfjs()
  const task = pdfjs.getDocument({
    data: new Uint8Array(bytes),
    ...pdfjsData(),
    verbosity: pdfjs.VerbosityLevel.ERRORS,
    disableFontFace: true,
    useSystemFonts: false,
    maxImageSize: 0,
  })
  const document = await task.promise
  const reader = new PageReader(pdfjs, await document.getOptionalContentConfig())
  const pages = []
  for (let number = 1; number <= document.numPages; number += 1) {
    pages.push(await reader.read(await document.getPage(number)))
  }
  await task.destroy()
  return pages.map(settledPage)
}

/** A page of its own, given by its content or by all it is made of. Throws when the PDF has none. */
export async function onePage(page: PdfPageSource | string, source: Omit<PdfSource, 'pages'> = {}): Promise<PdfPage> {
  const [read] = await pagesOf(pdfOf({ ...source, pages: [typeof page === 'string' ? { content: page } : page] }))
  if (read === undefined) throw new Error('The PDF has no page.')
  return read
}

export const textsOf = (page: PdfPage): string[] => page.runs.map((run) => run.text)

/** Where a run of text begins, in whole points. */
export function placeOf(run: TextRun | undefined): number[] {
  return [run?.x, run?.y].map((value) => Math.round(Number(value)))
}
