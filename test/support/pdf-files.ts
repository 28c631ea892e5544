/** One indirect object: its text, and a stream behind it where it has one. `/Length` is added. */
export interface PdfObject {
  readonly text: string
  readonly stream?: Uint8Array | string
}

export interface PdfPageSource {
  /** Operators of the content stream. */
  readonly content: string | Uint8Array
  /** Further entries of the page's dictionary: `/Rotate 90`, `/CropBox [...]`, `/Annots [...]`. */
  readonly entries?: string
  /** Entries of the stream's dictionary, such as its filters. */
  readonly streamEntries?: string
}

export interface PdfSource {
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
