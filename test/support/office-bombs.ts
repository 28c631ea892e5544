import { crc32, deflateRawSync } from 'node:zlib'
import { type ZipEntry, zipFile } from './document-bomb-files.js'
import { rawDeflatedBetween } from './inflating.js'

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
export const honestArchive = (): Buffer => word(swollen(GIBIBYTE))

/** The same, but says that it is small. */
export const lyingArchive = (): Buffer => word(swollen(1000))

/** Twenty-four megabytes of paragraphs, true in every respect: within the limit of bytes, and half a million objects. */
export const packedParagraphs = (): Buffer =>
  word(entry('word/document.xml', paragraphs(PARAGRAPH.repeat(Math.floor(24_000_000 / PARAGRAPH.length)))))

/** Sixty thousand parts. */
export function manyParts(): Buffer {
  const { data, claimedBytes } = entry('', '')
  const others = Array.from({ length: 60_000 }, (_, index) => ({ name: `word/media/${index}.xml`, data, claimedBytes }))
  return word(entry('word/document.xml', paragraphs(PARAGRAPH)), others)
}

/** Nine levels of ten: a thousand million words out of a kilobyte. */
export function expandingEntities(): Buffer {
  const levels = Array.from({ length: 9 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`).join(
    '',
  )
  const text = `${XML}<!DOCTYPE w:document [<!ENTITY e0 "laugh ">${levels}]><w:document ${WORD_NAMESPACE}><w:body><w:p><w:r><w:t>&e9;</w:t></w:r></w:p></w:body></w:document>`
  return word(entry('word/document.xml', text))
}

/** Tables within tables, a hundred thousand deep. */
export const nestedTables = (depth = 100_000): Buffer =>
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
export const farCells = (): Buffer =>
  workbook(
    '<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>',
  )

/** A kilobyte or two: a number format of opening brackets, and a thousand styles that use it. */
export const bracketFormat = (): Buffer =>
  workbook(
    '<sheetData><row r="1"><c r="A1" s="1"><v>1</v></c></row></sheetData>',
    `<numFmts><numFmt numFmtId="164" formatCode="${'['.repeat(50_000)}"/></numFmts><cellXfs>${'<xf numFmtId="164"/>'.repeat(1000)}</cellXfs>`,
  )
