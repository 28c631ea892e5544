import { EngineFault } from '../model/document.js'
import { escapeInline, type Surroundings } from './escape-markdown.js'

const CELL_ENDS: Surroundings = { before: ' ', after: ' ', isLinkText: false }

/** Short rows are filled up: one long row among many would make much out of little. */
const MOST_CELLS = 2_000_000

export interface MarkdownCell {
  /** From 0. */
  readonly column: number
  /** Markdown of one line, such as `cellText` makes; never empty. */
  readonly markdown: string
}

/**
 * A GFM table whose first row is the header. Columns and rows in which nothing stands are left out; '' when nothing is
 * left.
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

/** Text as it may stand in a cell, where no block can begin. */
export function cellText(text: string): string {
  const lines = escapeInline(text.trim(), CELL_ENDS).replaceAll('|', '\\|').split('\n')
  const trimmed = lines.map((line) => line.trim())
  return trimmed.filter((line) => line !== '').join('<br>')
}

function tableRow(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`
}
