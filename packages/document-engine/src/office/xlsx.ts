import { destination, escapeMarkdown } from '../markdown/escape-markdown.js'
import { cellText, markdownTable } from '../markdown/table-writer.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput } from '../model/document.js'
import { coreMetadata, linksOf, mainPart, OfficePackage, type Relationship, relationshipsOf } from './office-package.js'
import { builtInCode, NumberFormat } from './xlsx-number-format.js'
import { childElements, descendant, parseXml, relationId, scanXml, type XmlElement, type XmlHandlers } from './xml.js'

interface Workbook {
  /** Visible sheets in order. */
  readonly sheets: readonly { readonly name: string; readonly part: string }[]
  readonly sharedStrings: readonly string[]
  /** Number format by index of the cell style. */
  readonly numberFormats: readonly NumberFormat[]
  readonly startsIn1904: boolean
}

/** @throws EngineFault `broken`, `too_large`, `encrypted` */
function readWorkbook(pack: OfficePackage): Workbook {
  const part = mainPart(pack) ?? 'xl/workbook.xml'
  const bytes = pack.read(part)
  const root = bytes && parseXml(bytes)
  if (root === undefined) throw notExcel()
  const relationships = relationshipsOf(pack, part)
  const byType = (type: string): Uint8Array | undefined => {
    const related = [...relationships.values()].find((candidate) => candidate.type === type)
    return related && pack.read(related.target)
  }
  return {
    sheets: visibleSheets(root, relationships),
    sharedStrings: sharedStrings(byType('sharedStrings')),
    numberFormats: numberFormats(byType('styles')),
    startsIn1904: /^(?:1|true)$/.test(descendant(root, 'workbookPr')?.attributes.date1904 ?? ''),
  }
}

function visibleSheets(
  workbook: XmlElement,
  relationships: ReadonlyMap<string, Relationship>,
): readonly { readonly name: string; readonly part: string }[] {
  const listed = childElements(descendant(workbook, 'sheets'), 'sheet')
  const sheets = listed.flatMap(({ attributes }) => {
    const part = relationships.get(relationId(attributes) ?? '')?.target
    return part === undefined ? [] : [{ name: attributes.name ?? '', part, state: attributes.state ?? 'visible' }]
  })
  if (sheets.length === 0) throw notExcel()
  return sheets.filter(({ state }) => state === 'visible')
}

function notExcel(): EngineFault {
  return new EngineFault('broken', 'The file is damaged: it is no complete Excel workbook.')
}

function sharedStrings(bytes: Uint8Array | undefined): string[] {
  const strings: string[] = []
  if (bytes === undefined) return strings
  const collector = new StringCollector()
  scanXml(bytes, {
    open: (name) => {
      collector.open(name)
    },
    text: (text) => {
      collector.text(text)
    },
    close: (name) => {
      collector.close(name)
      if (name === 'si') strings.push(collector.take())
    },
  })
  return strings
}

/** Collects the text of `t` elements, without phonetic hints (`rPh`): a string may consist of several runs. */
class StringCollector {
  private collected = ''
  private isText = false
  private isReadingAid = false

  open(name: string): void {
    if (name === 't') this.isText = true
    else if (name === 'rPh') this.isReadingAid = true
  }

  text(text: string): void {
    if (this.isText && !this.isReadingAid) this.collected += text
  }

  close(name: string): void {
    if (name === 't') this.isText = false
    else if (name === 'rPh') this.isReadingAid = false
  }

  /** The text collected since the last call. */
  take(): string {
    const { collected } = this
    this.collected = ''
    return collected
  }
}

function numberFormats(bytes: Uint8Array | undefined): NumberFormat[] {
  const root = bytes && parseXml(bytes)
  const codes = new Map<string | undefined, string>()
  for (const format of childElements(descendant(root, 'numFmts'), 'numFmt')) {
    codes.set(format.attributes.numFmtId, format.attributes.formatCode ?? '')
  }
  const formats = new Map<string, NumberFormat>()
  return childElements(descendant(root, 'cellXfs'), 'xf').map(({ attributes: { numFmtId } }) => {
    const code = codes.get(numFmtId) ?? builtInCode(Number(numFmtId ?? 0))
    const format = formats.get(code) ?? new NumberFormat(code)
    formats.set(code, format)
    return format
  })
}

const GENERAL = new NumberFormat('General')

const MOST_CELLS = 1_000_000

interface SheetCell {
  /** `B7` */
  readonly reference: string
  /** Index from 0. */
  readonly column: number
  readonly text: string
}

interface Sheet {
  /** Non-empty cells, from top to bottom. */
  readonly rows: readonly (readonly SheetCell[])[]
  /** Relationship ids of links, by cell reference. */
  readonly linkIds: ReadonlyMap<string, string>
}

/**
 * @param takeCharacters called with the length of each text; throws when the sum is too large
 * @throws EngineFault `broken`, `too_large`
 */
function readSheet(bytes: Uint8Array, workbook: Workbook, takeCharacters: (count: number) => void): Sheet {
  const scan = new SheetScan(workbook, takeCharacters)
  scanXml(bytes, scan)
  return scan
}

class SheetScan implements Sheet, XmlHandlers {
  readonly rows: SheetCell[][] = []
  readonly linkIds = new Map<string, string>()
  private readonly inline = new StringCollector()
  private cells = 0
  private column = -1
  private cell: XmlElement['attributes'] = {}
  private value = ''
  private isValue = false

  constructor(
    private readonly workbook: Workbook,
    private readonly takeCharacters: (count: number) => void,
  ) {}

  readonly open: XmlHandlers['open'] = (name, attributes) => {
    this.inline.open(name)
    if (name === 'row') this.openRow()
    else if (name === 'c') this.openCell(attributes)
    else if (name === 'v') this.isValue = true
    else if (name === 'hyperlink') this.linkIds.set(attributes.ref ?? '', relationId(attributes) ?? '')
  }

  readonly text: XmlHandlers['text'] = (text) => {
    this.inline.text(text)
    if (this.isValue) this.value += text
  }

  readonly close: XmlHandlers['close'] = (name) => {
    this.inline.close(name)
    if (name === 'v') this.isValue = false
    else if (name === 'c') this.closeCell()
  }

  private openRow(): void {
    this.rows.push([])
    this.column = -1
  }

  private openCell(attributes: XmlElement['attributes']): void {
    this.cell = attributes
    this.column = columnOf(attributes.r) ?? this.column + 1
    this.value = ''
    this.inline.take()
  }

  private closeCell(): void {
    const text = this.cellText()
    if (text === '') return
    this.cells += 1
    if (this.cells > MOST_CELLS) throw new EngineFault('too_large', `A sheet has more than ${MOST_CELLS} cells.`)
    this.takeCharacters(text.length)
    this.rows.at(-1)?.push({ reference: this.cell.r ?? '', column: this.column, text })
  }

  private cellText(): string {
    const { value, workbook } = this
    const { t: type, s: style } = this.cell
    if (type === 's') return workbook.sharedStrings[Number(value)] ?? ''
    if (type === 'inlineStr') return this.inline.take()
    if (type === 'b') return value === '1' || value === 'true' ? 'TRUE' : 'FALSE'
    if (type === 'str' || type === 'e' || type === 'd') return value
    return (workbook.numberFormats[Number(style ?? 0)] ?? GENERAL).text(value, workbook.startsIn1904)
  }
}

/** Column index, from 0, of a reference such as `AB12`; undefined for a cell without reference, which is valid. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^\$?([a-z]{1,3})/i.exec(reference ?? '')?.[1]
  if (letters === undefined) return undefined
  let column = 0
  for (const letter of letters.toUpperCase()) column = column * 26 + letter.charCodeAt(0) - 64
  return column - 1
}

/**
 * Reads an Excel workbook: a heading and a table for each visible, non-empty sheet. A formula is written as its last result,
 * a merged cell in its first cell.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readXlsx(input: EngineInput, limits: EngineLimits): EngineOutput {
  const pack = new OfficePackage(input.bytes, limits)
  const workbook = readWorkbook(pack)
  const takeCharacters = characterBudget(limits.decodedBytes)
  const sections: string[] = []
  for (const { name, part } of workbook.sheets) {
    const bytes = pack.read(part)
    if (bytes === undefined) continue
    const sheet = readSheet(bytes, workbook, takeCharacters)
    const table = sheetTable(sheet, linksOf(relationshipsOf(pack, part)))
    if (table !== '') sections.push(`## ${escapeMarkdown(name)}\n\n${table}\n`)
  }
  const markdown = sections.join('\n')
  return { kind: 'xlsx', metadata: coreMetadata(pack), html: '', markdown, pages: Math.max(1, sections.length) }
}

/** Most characters of a workbook: a shared string in a million cells expands far beyond the size of the parts. */
function characterBudget(most: number): (count: number) => void {
  let left = most
  return (count) => {
    left -= count
    if (left < 0) throw new EngineFault('too_large', 'The workbook holds too much text.')
  }
}

function sheetTable({ rows, linkIds }: Sheet, links: ReadonlyMap<string, string>): string {
  return markdownTable(
    rows.map((cells) =>
      cells.map(({ reference, column, text }) => {
        const url = links.get(linkIds.get(reference) ?? '')
        return { column, markdown: url === undefined ? cellText(text) : linkCell(text, url) }
      }),
    ),
  )
}

function linkCell(text: string, url: string): string {
  return `[${cellText(text, true)}](${destination(url)})`
}
