import { crc32, deflateRawSync, deflateSync } from 'node:zlib'
import {
  deflated,
  HELVETICA,
  onePage,
  pdfFile,
  rawDeflatedBetween,
  showing,
  streamOf,
  type ZipEntry,
  zipFile,
} from './document-bomb-files.js'

const page = (body: string): Buffer => Buffer.from(`<!DOCTYPE html><html><head><title>t</title></head><body>${body}`)

/** A million elements, each in the one before. */
const nestedElements = (tag = 'div', depth = 1_000_000): Buffer => page(`<${tag}>`.repeat(depth) + 'The end.')

/** As many side by side. */
const manyElements = (count = 1_500_000): Buffer => page('<p>a<b>b</b>'.repeat(count))

/** Formatting that is opened anew in every paragraph, as the standard has it: the square of what is written. */
const reopenedFormatting = (count = 60_000): Buffer =>
  page(Array.from({ length: count }, (_, index) => `<p><font color="${index}">`).join(''))

/** One element with a million attributes. */
const manyAttributes = (count = 1_000_000): Buffer =>
  page(`<p ${Array.from({ length: count }, (_, index) => `a${index}=b`).join(' ')}>text`)

/** A hundred thousand cells that each span a thousand rows and a thousand columns. */
const spanningCells = (count = 100_000): Buffer =>
  page(`<table>${'<tr><td rowspan="1000" colspan="1000">cell</td></tr>'.repeat(count)}</table>`)

/** Document types whose entities grow; no reader of HTML may follow them. */
const expandingPage = (): Buffer => {
  const levels = Array.from({ length: 9 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`)
  return Buffer.from(`<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "laugh">${levels.join('')}]><html><body>&e9;`)
}

/** Nothing but beginnings of what never ends. */
const unfinished = (text: string, bytes = 10_000_000): Buffer => page(text.repeat(Math.floor(bytes / text.length)))

const GIBIBYTE = 1_073_741_824
const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const OFFICE = 'http://schemas.openxmlformats.org'
const WORD_NAMESPACE = `xmlns:w="${OFFICE}/wordprocessingml/2006/main"`
const WORD_TYPE = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml'
const SHEET_TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml'

const entry = (name: string, text: string): ZipEntry => ({
  name,
  data: deflateRawSync(Buffer.from(text)),
  claimedBytes: Buffer.byteLength(text),
  checksum: crc32(text),
})

function around(main: string, type: string, others: readonly ZipEntry[]): Buffer {
  const types = `${XML}<Types xmlns="${OFFICE}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/${main}" ContentType="${type}"/></Types>`
  const relations = `${XML}<Relationships xmlns="${OFFICE}/package/2006/relationships"><Relationship Id="r1" Type="${OFFICE}/officeDocument/2006/relationships/officeDocument" Target="${main}"/></Relationships>`
  return zipFile([entry('[Content_Types].xml', types), entry('_rels/.rels', relations), ...others])
}

const word = (document: ZipEntry, others: readonly ZipEntry[] = []): Buffer =>
  around('word/document.xml', WORD_TYPE, [document, ...others])

const PARAGRAPH = '<w:p><w:r><w:t>A line of text.</w:t></w:r></w:p>'
const paragraphs = (text: string): string => `${XML}<w:document ${WORD_NAMESPACE}><w:body>${text}</w:body></w:document>`

function swollen(claimedBytes: number): ZipEntry {
  const [head = '', tail = ''] = paragraphs('|').split('|')
  return { name: 'word/document.xml', data: rawDeflatedBetween(head, 1024, tail), claimedBytes }
}

/** One mebibyte that inflates to a gibibyte, and says so. */
const honestArchive = (): Buffer => word(swollen(GIBIBYTE))

/** The same, but says that it is small. */
const lyingArchive = (): Buffer => word(swollen(1000))

/** Twenty-four megabytes of paragraphs, true in every respect: within the limit of bytes, and half a million objects. */
const packedParagraphs = (): Buffer =>
  word(entry('word/document.xml', paragraphs(PARAGRAPH.repeat(Math.floor(24_000_000 / PARAGRAPH.length)))))

/** Sixty thousand parts. */
function manyParts(): Buffer {
  const { data, claimedBytes } = entry('', '')
  const others = Array.from({ length: 60_000 }, (_, index) => ({ name: `word/media/${index}.xml`, data, claimedBytes }))
  return word(entry('word/document.xml', paragraphs(PARAGRAPH)), others)
}

/** Nine levels of ten: a thousand million words out of a kilobyte. */
function expandingEntities(): Buffer {
  const levels = Array.from({ length: 9 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`).join(
    '',
  )
  const text = `${XML}<!DOCTYPE w:document [<!ENTITY e0 "laugh ">${levels}]><w:document ${WORD_NAMESPACE}><w:body><w:p><w:r><w:t>&e9;</w:t></w:r></w:p></w:body></w:document>`
  return word(entry('word/document.xml', text))
}

/** Tables within tables, a hundred thousand deep. */
const nestedTables = (depth = 100_000): Buffer =>
  word(
    entry(
      'word/document.xml',
      paragraphs(`${'<w:tbl><w:tr><w:tc>'.repeat(depth)}${PARAGRAPH}${'</w:tc></w:tr></w:tbl>'.repeat(depth)}`),
    ),
  )

/** A workbook of one sheet with this `sheetData`, and with these styles. */
function workbook(sheetData: string, styles = ''): Buffer {
  const main = `xmlns="${OFFICE}/spreadsheetml/2006/main"`
  const related = (id: string, type: string, target: string): string =>
    `<Relationship Id="${id}" Type="${OFFICE}/officeDocument/2006/relationships/${type}" Target="${target}"/>`
  const book = `${XML}<workbook ${main} xmlns:r="${OFFICE}/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`
  const relations = `${XML}<Relationships xmlns="${OFFICE}/package/2006/relationships">${related('r1', 'worksheet', 'worksheets/sheet1.xml')}${related('r2', 'styles', 'styles.xml')}</Relationships>`
  return around('xl/workbook.xml', SHEET_TYPE, [
    entry('xl/workbook.xml', book),
    entry('xl/_rels/workbook.xml.rels', relations),
    entry('xl/worksheets/sheet1.xml', `${XML}<worksheet ${main}>${sheetData}</worksheet>`),
    entry('xl/styles.xml', `${XML}<styleSheet ${main}>${styles}</styleSheet>`),
  ])
}

/** A sheet with two cells, at its opposite corners: seventeen thousand million between them. */
const farCells = (): Buffer =>
  workbook(
    '<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>',
  )

/** A kilobyte or two: a number format of opening brackets, and a thousand styles that use it. */
const bracketFormat = (): Buffer =>
  workbook(
    '<sheetData><row r="1"><c r="A1" s="1"><v>1</v></c></row></sheetData>',
    `<numFmts><numFmt numFmtId="164" formatCode="${'['.repeat(50_000)}"/></numFmts><cellXfs>${'<xf numFmtId="164"/>'.repeat(1000)}</cellXfs>`,
  )

const TEXT = showing('(A line of text that can be read.)')

/** A page whose lines are dots without end, as those that lead to a page number, and lead nowhere. */
const dottedLine = (): Buffer => onePage(streamOf(showing(`(A line ${'.'.repeat(200_000)}!)`)))

/** A few kilobytes whose content is two gibibytes of white space. */
const stackedFlate = (): Buffer =>
  onePage(streamOf(deflateSync(deflated(2048), { level: 9 }), '/Filter [/FlateDecode /FlateDecode]'))

/** Every page an object of its own, all of them real. */
function manyPages(pages = 200_000): Buffer {
  const kids = Array.from({ length: pages }, (_, index) => `${index + 3} 0 R`).join(' ')
  const page = '<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>'
  return pdfFile([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages} /Kids [${kids}] >>`,
    ...Array.from({ length: pages }, () => page),
  ])
}

/** One page that says it is a hundred million. */
const claimedPages = (): Buffer =>
  Buffer.from(onePage(streamOf(TEXT)).toString('latin1').replace('/Count 1', '/Count 100000000'), 'latin1')

/** A node of the page tree that is its own child, and says it has no end. */
const endlessPageTree = (): Buffer =>
  pdfFile(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 400 >>'])

/** A picture of ten thousand million pixels, a predictor of two thousand million columns, on a page with text. */
function hugePicture(): Buffer {
  const picture = streamOf(
    deflated(64),
    '/Type /XObject /Subtype /Image /Width 100000 /Height 100000 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode',
  )
  const content = Buffer.concat([TEXT, Buffer.from(' q 600 0 0 800 0 0 cm /P Do Q')])
  return onePage(streamOf(content), HELVETICA, [picture], '/XObject << /P 6 0 R >>')
}

const hugePredictor = (): Buffer =>
  onePage(
    streamOf(
      deflateSync(TEXT),
      '/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 2000000000 /Colors 4 /BitsPerComponent 16 >>',
    ),
  )

/** The length of a stream, the size of the cross-reference table and its first section, all of them lies. */
const hugeDeclarations = (): Buffer =>
  Buffer.from(
    onePage({ dictionary: '<< /Length 99999999999 >>', stream: TEXT })
      .toString('latin1')
      .replace(/xref\n0 \d+/, 'xref\n0 4294967295')
      .replace(/\/Size \d+/, '/Size 2147483647'),
    'latin1',
  )

/** Forms that draw each other twice: 2^40 times the innermost. */
function drawnDoubling(levels = 40): Buffer {
  const form = (level: number) =>
    streamOf(
      Buffer.from(level === levels ? TEXT : '/N Do /N Do'),
      `/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F 5 0 R >> /XObject << /N ${level + 7} 0 R >> >>`,
    )
  const forms = Array.from({ length: levels + 1 }, (_, level) => form(level))
  return onePage(streamOf(Buffer.from('/N Do')), HELVETICA, forms, '/XObject << /N 6 0 R >>')
}

const composite = (encoding: string, toUnicode: string): string =>
  `<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding ${encoding} /ToUnicode ${toUnicode} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 1000 >>] >>`

/** Character maps whose ranges hold every number there is. */
function hugeCharacterMap(): Buffer {
  const ranges = Array.from({ length: 100 }, () => '<00000000> <FFFFFFFF> <0041>').join('\n')
  const map = Buffer.from(
    `/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 100 beginbfrange\n${ranges}\nendbfrange 100 begincidrange\n${ranges.replaceAll('<0041>', '1')}\nendcidrange endcmap end`,
  )
  const text = streamOf(showing(`<${'00000041'.repeat(2000)}>`))
  return onePage(text, composite('6 0 R', '6 0 R'), [streamOf(map, '/Type /CMap /CMapName /Bomb /UseCMap 6 0 R')])
}

/** A font program that inflates without end, and one of the kind that says it has four thousand million glyphs. */
function brokenFont(): Buffer {
  const descriptor =
    '<< /Type /FontDescriptor /FontName /X /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 /FontFile2 7 0 R >>'
  const font =
    '<< /Type /Font /Subtype /TrueType /BaseFont /X /FirstChar 0 /LastChar 2000000000 /Widths [500] /FontDescriptor 6 0 R >>'
  return onePage(streamOf(TEXT), font, [
    descriptor,
    streamOf(deflated(1024), '/Filter /FlateDecode /Length1 4294967295'),
  ])
}

/** Nothing tells these beforehand: whichever of memory and time is used up first ends their reader. */
export const EXHAUSTING = [422, 504] as const

export interface Bomb {
  readonly name: string
  /** What it is answered with: 200 where what is harmless about it is read. */
  readonly statuses: readonly number[]
  readonly contentType: string
  readonly make: () => Buffer
}

type Row = readonly [name: string, status: number | typeof EXHAUSTING, make: () => Buffer]

const bombs = (contentType: string, rows: readonly Row[]): Bomb[] =>
  rows.map(([name, status, make]) => ({
    name,
    statuses: typeof status === 'number' ? [status] : status,
    contentType,
    make,
  }))

const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

/** Documents that are made to end their reader. */
export const BOMBS: readonly Bomb[] = [
  ...bombs('application/pdf', [
    ['a PDF of two stacked Flate filters', EXHAUSTING, stackedFlate],
    ['a PDF of 200,000 pages', EXHAUSTING, manyPages],
    ['a PDF that says it has 100,000,000 pages', 200, claimedPages],
    ['a PDF whose tree of pages is its own branch', 422, endlessPageTree],
    ['a PDF with a picture of 10,000,000,000 pixels', 200, hugePicture],
    ['a PDF with a predictor of 2,000,000,000 columns', 422, hugePredictor],
    ['a PDF that lies about every length', 200, hugeDeclarations],
    ['a PDF whose forms draw each other 2^40 times', EXHAUSTING, drawnDoubling],
    ['a PDF with character maps of every number', 200, hugeCharacterMap],
    ['a PDF with a font that inflates without end', EXHAUSTING, brokenFont],
    ['a PDF of dots that lead nowhere', 200, dottedLine],
  ]),
  ...bombs(WORD, [
    ['a DOCX that inflates to a gibibyte', 413, honestArchive],
    ['a DOCX that does so but says otherwise', 413, lyingArchive],
    ['a DOCX of 24 MB of paragraphs', 413, packedParagraphs],
    ['a DOCX of 60,000 parts', 413, manyParts],
    ['a DOCX whose entities expand', 422, expandingEntities],
    ['a DOCX of 100,000 nested tables', 413, nestedTables],
    ['an XLSX with cells in its corners', 200, farCells],
    ['an XLSX whose number format is all brackets', 200, bracketFormat],
  ]),
  ...bombs('text/html', [
    ['1,000,000 nested elements', 413, () => nestedElements('div')],
    ['1,000,000 nested formatting elements', 200, () => nestedElements('b')],
    ['1,000,000 nested tables', 413, () => nestedElements('table')],
    // What is left of these is their title.
    ['1,000,000 nested drawings', 200, () => nestedElements('svg')],
    ['4,500,000 elements side by side', 413, manyElements],
    ['formatting that is opened anew 60,000 times', 200, reopenedFormatting],
    ['1,000,000 attributes', 200, manyAttributes],
    ['cells that span one another', EXHAUSTING, spanningCells],
    ['a page whose entities expand', 200, expandingPage],
    ['10 MB of unfinished tags', EXHAUSTING, () => unfinished('<')],
    ['10 MB of unfinished comments', 200, () => unfinished('<!--')],
    ['10 MB of unfinished links', 200, () => unfinished('<a href="')],
    ['10 MB of unfinished cells', 413, () => unfinished('<table><tr><td>')],
  ]),
]
