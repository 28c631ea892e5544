import { EngineFault } from '../model/document.js'
import {
  type Block,
  BOLD,
  type Inline,
  isWholly,
  type ListBlock,
  type TableBlock,
  type TableCell,
  type TableRow,
  withMark,
  withoutMark,
} from './document-model.js'
import { escapeInline, inlineCode, joinLines, LINE_BREAK, LINE_ENDS } from './escape-markdown.js'
import { writeInline } from './inline-writer.js'

/** Blocks of a cell as one line: their lines joined by `<br>`. */
function writeOnOneLine(blocks: readonly Block[]): string {
  const lines: string[] = []
  addLines(blocks, lines)
  return joinLines(lines)
}

function addLines(blocks: readonly Block[], lines: string[]): void {
  for (const block of blocks) addBlock(block, lines)
}

function addBlock(block: Block, lines: string[]): void {
  switch (block.kind) {
    case 'paragraph':
      lines.push(writeLine(block.content))
      return
    case 'heading':
      lines.push(writeLine(withMark(block.content, BOLD)))
      return
    case 'code':
      for (const text of block.text.split('\n'))
        if (text.trim() !== '') lines.push(inlineCode(text.trimEnd(), { isInCell: true }))
      return
    case 'math':
      lines.push(cellTex(`$$${block.tex}$$`))
      return
    case 'quote':
      addLines(block.blocks, lines)
      return
    case 'list':
      addItems(block, lines)
      return
    case 'table':
      if (block.caption.length > 0) lines.push(writeLine(block.caption))
      // Tables do not nest in Markdown: a row becomes a line. Spans are not expanded, to bound the size.
      for (const row of block.rows)
        lines.push(
          row.cells
            .map((cell) => writeOnOneLine(cell.blocks))
            .join(' ')
            .trim(),
        )
      return
    case 'rule':
      return
  }
}

function addItems(list: ListBlock, lines: string[]): void {
  for (const [index, item] of list.items.entries()) {
    const marker = list.isOrdered ? `${String(list.start + index)}. ` : '- '
    const own: string[] = []
    addLines(item.blocks, own)
    const [first = '', ...rest] = own
    const box = item.task === 'none' ? '' : item.task === 'done' ? '[x] ' : '[ ] '
    lines.push(`${marker}${box}${first}`)
    for (const text of rest) lines.push(text)
  }
}

function writeLine(pieces: readonly Inline[]): string {
  return writeInline(cellPieces(pieces), LINE_BREAK)
}

function cellPieces(pieces: readonly Inline[]): readonly Inline[] {
  return pieces.map((piece) => {
    if (piece.kind === 'link') return { ...piece, content: cellPieces(piece.content) }
    if (piece.kind === 'raw') return { ...piece, text: cellTex(piece.text) }
    // Only such code depends on being in a cell.
    if (piece.kind !== 'code' || !piece.text.includes('\\|')) return piece
    return { kind: 'raw', text: inlineCode(piece.text, { isInCell: true }), marks: piece.marks }
  })
}

/** TeX with names for its bars, since a `|` ends a cell. */
function cellTex(text: string): string {
  return text.replaceAll('\\|', '\\Vert ').replaceAll('|', '\\vert ')
}

/** Most cells: short rows are padded, so that one long row among many multiplies the size. */
const MOST_CELLS = 2_000_000

export interface MarkdownCell {
  /** Index from 0. */
  readonly column: number
  /** Markdown of one line, such as `cellText` makes; never empty. */
  readonly markdown: string
}

/**
 * A GFM table whose first row is the header. Empty columns and rows are left out; '' when nothing is left.
 *
 * @throws EngineFault `too_large`
 */
export function markdownTable(rows: readonly (readonly MarkdownCell[])[]): string {
  const filled = rows.filter((row) => row.length > 0)
  const columns = [...new Set(filled.flatMap((row) => row.map(({ column }) => column)))].sort((a, b) => a - b)
  if (filled.length * columns.length > MOST_CELLS) {
    throw new EngineFault('too_large', `The table has more than ${MOST_CELLS} cells.`)
  }
  const places = new Map(columns.map((column, place) => [column, place]))
  const [header, ...body] = filled.map((row) => {
    const cells = columns.map(() => '')
    for (const { column, markdown } of row) cells[places.get(column) ?? 0] = markdown
    return tableRow(cells)
  })
  return header === undefined ? '' : [header, tableRow(columns.map(() => '---')), ...body].join('\n')
}

/** Text escaped for a cell, where no block can begin. */
export function cellText(text: string, isLinkText = false): string {
  const lines = escapeInline(text.trim(), { ...LINE_ENDS, isLinkText })
    .replaceAll('|', '\\|')
    .split('\n')
  const trimmed = lines.map((line) => line.trim())
  return joinLines(trimmed.filter((line) => line !== ''))
}

function tableRow(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`
}

// Bounds for the grid: a span may claim a thousand cells.
const MOST_FILL_CELLS = 10_000
const MOST_FILL_PER_CELL = 4
// A cell that spans rows is repeated in each, if its text is no longer than a label.
const LONGEST_REPEATED = 200

/**
 * The rows of a GFM table: a header row, a delimiter row and the rest, all with the same number of cells. A cell
 * that spans columns is written in the first of them, one that spans rows in each. Undefined for fewer than two columns, and
 * for a grid that would be mostly empty.
 */
export function writeTable(table: TableBlock): readonly string[] | undefined {
  const grid = gridOf(table.rows)
  if (grid === undefined) return undefined
  const columns = usedColumns(grid)
  const rows = grid.filter((row) => row.some((text) => text !== ''))
  const [header, ...body] = rows.map((row) => line(columns.map((column) => padded(row[column] ?? ''))))
  if (header === undefined || columns.length < 2) return undefined
  const first = table.rows[0]?.cells ?? []
  const isPlain = first.every((cell) => cell.columns === 1)
  const delimiters = columns.map((column) => DELIMITERS[(isPlain && first[column]?.alignment) || ''])
  return [header, line(delimiters), ...body]
}

const DELIMITERS: Readonly<Record<TableCell['alignment'], string>> = {
  '': ' --- ',
  left: ' :--- ',
  center: ' :---: ',
  right: ' ---: ',
}

/** Text by row and column; undefined when the spans make the grid mostly empty. */
function gridOf(rows: readonly TableRow[]): string[][] | undefined {
  let cells = 0
  for (const row of rows) cells += row.cells.length
  const most = cells * MOST_FILL_PER_CELL + MOST_FILL_CELLS
  const grid: string[][] = []
  const reaching: Reaching = new Map()
  let size = 0
  let width = 0
  for (const row of rows) {
    const texts = rowTexts(row, reaching, most)
    size += texts.length
    width = Math.max(width, texts.length)
    if (size > most) return undefined
    grid.push(texts)
  }
  return width * grid.length > most ? undefined : grid
}

/** By column: the text of a cell that spans down from a row above, and the number of rows left. */
type Reaching = Map<number, { readonly text: string; rows: number }>

function rowTexts(row: TableRow, reaching: Reaching, most: number): string[] {
  const texts: string[] = []
  for (const cell of row.cells) {
    takeReaching(texts, reaching)
    const text = cellMarkdown(row.isHeader ? unbold(cell) : cell)
    const repeated = text.length > LONGEST_REPEATED ? '' : text
    for (let column = 0; column < cell.columns && texts.length <= most; column += 1) {
      if (cell.rows > 1) reaching.set(texts.length, { text: column === 0 ? repeated : '', rows: cell.rows - 1 })
      texts.push(column === 0 ? text : '')
    }
  }
  let last = -1
  for (const column of reaching.keys()) last = Math.max(last, column)
  takeReaching(texts, reaching)
  while (texts.length <= last) {
    texts.push('')
    takeReaching(texts, reaching)
  }
  return texts
}

function takeReaching(texts: string[], reaching: Reaching): void {
  for (let above = reaching.get(texts.length); above !== undefined; above = reaching.get(texts.length)) {
    above.rows -= 1
    if (above.rows === 0) reaching.delete(texts.length)
    texts.push(above.text)
  }
}

function cellMarkdown(cell: TableCell): string {
  return escapePipes(writeOnOneLine(cell.blocks))
}

/**
 * Finished inline Markdown for a cell, which an unescaped pipe ends, in code too. Parsers differ on one behind a backslash; code
 * must have none.
 */
export function escapePipes(markdown: string): string {
  return markdown.replace(/\\?\|/g, (pipe) => (pipe === '|' ? '\\|' : '\\&#124;'))
}

/** Removes bold from a header cell: header cells are bold anyway. */
function unbold(cell: TableCell): TableCell {
  const blocks = cell.blocks.map((block) =>
    block.kind === 'paragraph' && isWholly(block.content, BOLD)
      ? { ...block, content: withoutMark(block.content, BOLD) }
      : block,
  )
  return { ...cell, blocks }
}

function usedColumns(grid: readonly (readonly string[])[]): number[] {
  const used = new Set<number>()
  for (const row of grid) for (const [column, text] of row.entries()) if (text !== '') used.add(column)
  return [...used].sort((left, right) => left - right)
}

function line(cells: readonly string[]): string {
  return `|${cells.join('|')}|`
}

function padded(text: string): string {
  return text === '' ? ' ' : ` ${text} `
}
