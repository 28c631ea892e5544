import { writeOnOneLine } from './cell-writer.js'
import { BOLD, type TableBlock, type TableCell, type TableRow } from './document-model.js'
import { isWholly, withoutMark } from './tidy-inline.js'

// A span may claim a thousand cells each; rows and columns that nothing stands in are not made without measure.
const MOST_FILL_CELLS = 10_000
const MOST_FILL_PER_CELL = 4
// A cell that reaches over rows is repeated in each, as long as its text is a label.
const LONGEST_REPEATED = 200

/**
 * The rows of a GFM table: a header row, a delimiter row and the rest, all with the same number of cells. A cell over
 * columns stands in the first of them, one over rows in each. Undefined when it has no grid worth the name: fewer than
 * two columns, or so ragged that most of it would be empty.
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

/** Text by row and column; undefined when the spans make it a waste. */
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

/** By column, what reaches down from the rows above, and over how many rows still. */
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

// A pipe ends a cell wherever it stands, in code too, unless it is escaped. Readers do not agree on one that stands
// behind an escaped backslash.
function cellMarkdown(cell: TableCell): string {
  return writeOnOneLine(cell.blocks).replace(/\\?\|/g, (pipe) => (pipe === '|' ? '\\|' : '\\&#124;'))
}

/** Bold says nothing in a header row. */
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
