import { isAligned } from './alignment.js'
import { cellPieces, LEAST_CELL_GAP_EM } from './cell-pieces.js'
import { type ColumnGap, columnsBetween, commonGaps, gapsOfRow } from './column-gaps.js'
import type { Cell, Line, Table } from './layout-model.js'
import { isLeaderLine } from './leaders.js'
import { isListMark } from './list-markers.js'
import { filledCount, groupRows } from './row-grouping.js'
import { cellsOfRow } from './table-cells.js'

const LEAST_ROWS = 3
/** In em: rows wider apart are two tables. */
const MOST_PITCH_EM = 3.2
const TIGHT_LEADING_EM = 1.45
const LEAST_FILLED_SHARE = 0.5
const PROSE_LENGTH = 38

/** A table, or the pieces of a row that belongs to none. */
type TableOrRow = Table | readonly Line[]

interface Stretch {
  readonly end: number
  readonly gaps: readonly ColumnGap[]
}

/** Finds tables without rules in the rows of one region: white space that runs through three rows and more. */
export function findAlignedTables(rows: readonly (readonly Line[])[], page: number): TableOrRow[] {
  const pieces = rows.map((row) => cellPieces(row))
  const found: TableOrRow[] = []
  let index = 0
  while (index < rows.length) {
    const stretch = stretchFrom(pieces, index)
    const table = stretch === undefined ? undefined : tableOf(pieces.slice(index, stretch.end), stretch.gaps, page)
    if (stretch === undefined || table === undefined) {
      found.push(rows[index] ?? [])
      index += 1
    } else {
      found.push(table)
      index = stretch.end
    }
  }
  return found
}

/** Rows from `start` that leave the white space of the first ones free. */
function stretchFrom(rows: readonly (readonly Line[])[], start: number): Stretch | undefined {
  const [first] = rows[start] ?? []
  if (first === undefined || !isCandidate(rows[start])) return undefined
  const leastWidth = first.size * LEAST_CELL_GAP_EM
  let gaps = gapsOfRow(rows[start] ?? [])
  let best: Stretch | undefined
  for (let index = start + 1; index < rows.length; index += 1) {
    const row = rows[index] ?? []
    const above = rows[index - 1] ?? []
    // Chapters of a table of contents have no dots; the sections below them do.
    if (row.some(isLeaderLine)) return undefined
    if (!follows(row, above, gaps)) break
    const common = commonGaps(gaps, gapsOfRow(row), leastWidth)
    if (common.length < 3 || common.length < gaps.length * 0.7) break
    gaps = common
    if (isCandidate(row) || isWrappedCell(row, above, gaps)) best = { end: index + 1, gaps }
  }
  return best
}

function isCandidate(row: readonly Line[] | undefined): boolean {
  if (row === undefined || row.length < 2 || row.every((piece) => piece.isFixedPitch)) return false
  return !row.some(isLeaderLine) && !(row.length === 2 && isListMark(row[0]?.text ?? ''))
}

function follows(row: readonly Line[], above: readonly Line[], gaps: readonly ColumnGap[]): boolean {
  const [piece] = row
  const [last] = above
  if (piece === undefined || last === undefined || Math.abs(piece.size - last.size) > 1.5) return false
  const distance = piece.y - last.y
  if (row.length > 1) return distance < piece.size * MOST_PITCH_EM && !isListMark(piece.text)
  return (
    distance < piece.size * TIGHT_LEADING_EM || (above.length > 1 && gaps.length > 3 && distance < piece.size * 2.2)
  )
}

/** A single piece that goes on in a cell other than the first. */
function isWrappedCell(row: readonly Line[], above: readonly Line[], gaps: readonly ColumnGap[]): boolean {
  const [piece] = row
  const firstEnd = gaps[1]?.x1 ?? Infinity
  return piece !== undefined && piece.x1 > firstEnd && piece.y - (above[0]?.y ?? 0) < piece.size * TIGHT_LEADING_EM
}

function tableOf(rows: readonly (readonly Line[])[], gaps: readonly ColumnGap[], page: number): Table | undefined {
  const columns = columnsBetween(gaps)
  if (rows.length < LEAST_ROWS || isProse(rows)) return undefined
  const lines = rows.map((row) => ({ y: row[0]?.y ?? 0, size: row[0]?.size ?? 10, cells: cellsOfRow(row, columns) }))
  const cells = groupRows(lines)
  if (cells.length < LEAST_ROWS || !isFilled(cells)) return undefined
  if (!columns.every((_, column) => isAligned(lines.map((line) => line.cells[column] ?? [])))) return undefined
  return { kind: 'table', page, rows: cells, ...extentOf(rows.flat()) }
}

export function isFilled(rows: readonly (readonly Cell[])[]): boolean {
  const filled = rows.reduce((sum, row) => sum + filledCount(row), 0)
  return filled >= rows.length * (rows[0]?.length ?? 0) * LEAST_FILLED_SHARE
}

export function extentOf(pieces: readonly Line[]): { x1: number; x2: number; top: number; bottom: number } {
  return {
    x1: pieces.reduce((least, piece) => Math.min(least, piece.x1), Infinity),
    x2: pieces.reduce((most, piece) => Math.max(most, piece.x2), -Infinity),
    top: pieces.reduce((least, piece) => Math.min(least, piece.top), Infinity),
    bottom: pieces.reduce((most, piece) => Math.max(most, piece.bottom), -Infinity),
  }
}

/** Most cells as long as lines of a text: columns of prose that nothing else told apart. */
export function isProse(rows: readonly (readonly Line[])[]): boolean {
  const long = rows.filter((row) => row.filter((piece) => piece.text.length > PROSE_LENGTH).length > 1)
  return long.length * 2 > rows.length
}
