import { readLine } from './block-handlers.js'
import { codeLanguage, codeTableText } from './code-handlers.js'
import type { Block, Inline, TableBlock, TableCell, TableRow } from './document-model.js'
import { nesting, type Reading, type Style } from './element-handler.js'
import { attributeOf, childrenOf, type MarkupNode, tagOf } from './markup-node.js'

// Limits of the HTML standard.
const MOST_COLUMNS_SPANNED = 1_000
const MOST_ROWS_SPANNED = 65_534
// A cell with more blocks belongs to a layout table.
const MOST_BLOCKS_OF_DATUM = 5

export const readTable = nesting((element, reading, style) => {
  reading.endParagraph()
  const code = codeTableText(element)
  if (code !== undefined && code !== '') {
    reading.addBlock({ kind: 'code', language: codeLanguage(element), text: code })
    return
  }
  const parts: TableParts = { rows: [], caption: [], isMarked: false }
  readParts(element, { reading, style, isHeader: false }, parts)
  const role = attributeOf(element, 'role')
  const isPresentation = role === 'presentation' || role === 'none'
  for (const section of sectionsOf(parts)) {
    const table: TableBlock = { kind: 'table', caption: section.caption, rows: section.rows }
    if (section.heading !== undefined) reading.addBlock(section.heading)
    if (table.caption.length === 0 && table.rows.every(isEmpty)) continue
    if (isPresentation || isLayout(table, parts.isMarked)) addCells(table, reading)
    else reading.addBlock(table)
  }
}, 'lines')

interface TableSection {
  /** Stands above the section's own rows. */
  readonly heading?: Block
  readonly caption: readonly Inline[]
  readonly rows: TableRow[]
}

/** The rows between those that hold a heading of the document and nothing else, as lists of members have them. */
function sectionsOf({ caption, rows }: TableParts): readonly TableSection[] {
  const sections: TableSection[] = [{ caption, rows: [] }]
  for (const row of rows) {
    const [first, ...rest] = row.cells.flatMap((cell) => cell.blocks)
    if (first?.kind === 'heading' && rest.length === 0) sections.push({ heading: first, caption: [], rows: [] })
    else sections.at(-1)?.rows.push(row)
  }
  return sections
}

interface TableParts {
  readonly rows: TableRow[]
  caption: readonly Inline[]
  /** Whether `th` or `caption` marks a data table. */
  isMarked: boolean
}

interface Place {
  readonly reading: Reading
  readonly style: Style
  readonly isHeader: boolean
}

function readParts(node: MarkupNode, place: Place, parts: TableParts): void {
  for (const child of childrenOf(node)) {
    const tag = tagOf(child)
    if (tag === 'tr') readRow(child, place, parts)
    else if (tag === 'caption') {
      const { line, rest } = readLine(child, place.reading, place.style)
      parts.caption = line
      for (const block of rest) place.reading.addBlock(block)
      parts.isMarked = true
    } else if (tag === 'thead' || tag === 'tbody' || tag === 'tfoot' || tag === 'form')
      readParts(child, { ...place, isHeader: tag === 'thead' }, parts)
    // Browsers show content between rows above the table.
    else place.reading.readNode(child, place.style)
  }
}

function readRow(row: MarkupNode, place: Place, parts: TableParts): void {
  const cells: TableCell[] = []
  let isHeader = true
  for (const child of childrenOf(row)) {
    const tag = tagOf(child)
    if (tag !== 'td' && tag !== 'th') continue
    if (tag === 'th') parts.isMarked = true
    else isHeader = false
    cells.push({
      blocks: place.reading.readBlocksWithin(child, place.style),
      columns: spanOf(child, 'colspan', MOST_COLUMNS_SPANNED),
      rows: spanOf(child, 'rowspan', MOST_ROWS_SPANNED),
      alignment: alignmentOf(child),
    })
  }
  if (cells.length > 0) parts.rows.push({ isHeader: place.isHeader || isHeader, cells })
}

function spanOf(cell: MarkupNode, name: 'colspan' | 'rowspan', most: number): number {
  const value = attributeOf(cell, name)
  if (!/^\d{1,9}$/.test(value)) return 1
  // A rowspan of 0 reaches to the end of the table.
  const span = Number(value)
  return span === 0 ? (name === 'rowspan' ? most : 1) : Math.min(span, most)
}

function alignmentOf(cell: MarkupNode): TableCell['alignment'] {
  const style = /text-align\s*:\s*(left|center|right)/i.exec(attributeOf(cell, 'style'))?.[1]
  const alignment = (style ?? attributeOf(cell, 'align')).toLowerCase()
  return alignment === 'left' || alignment === 'center' || alignment === 'right' ? alignment : ''
}

function isEmpty(row: TableRow): boolean {
  return row.cells.every((cell) => cell.blocks.length === 0)
}

function isLayout(table: TableBlock, isMarked: boolean): boolean {
  if (table.rows.every((row) => row.cells.length <= 1)) return true
  if (isMarked) return false
  return table.rows.length === 1 || table.rows.some((row) => row.cells.some((cell) => isPage(cell.blocks)))
}

function isPage(blocks: readonly Block[]): boolean {
  if (blocks.length > MOST_BLOCKS_OF_DATUM) return true
  return blocks.some(({ kind }) => kind === 'table' || kind === 'heading' || kind === 'code' || kind === 'rule')
}

function addCells(table: TableBlock, reading: Reading): void {
  if (table.caption.length > 0) reading.addBlock({ kind: 'paragraph', content: table.caption })
  for (const row of table.rows) for (const cell of row.cells) for (const block of cell.blocks) reading.addBlock(block)
}
