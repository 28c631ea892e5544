import type { Cell, Line, Table } from './layout-model.js'
import { CAPTION_PATTERN, isLeaderLine } from './line-text.js'
import { isListMark } from './list-markers.js'
import { RULE_TOLERANCE, type Stroke } from './ruled-grid.js'
import {
  baselines,
  cellPieces,
  cellsOfRow,
  type Column,
  type ColumnGap,
  columnsBetween,
  commonGaps,
  filledCount,
  findColumns,
  gapsOfRow,
  groupRows,
  LEAST_CELL_GAP_EM,
} from './table-cells.js'

const LEAST_ALIGNED_SHARE = 0.6
const ALIGNMENT_TOLERANCE = 2.5

/** Whether the cells of a column are aligned by start, end, middle or decimal point. */
function isAligned(cells: readonly Cell[]): boolean {
  const filled = cells.filter((cell) => cell.length > 0)
  const edges = [
    filled.map((cell) => cell[0]?.x1 ?? 0),
    filled.map((cell) => cell.at(-1)?.x2 ?? 0),
    filled.map((cell) => ((cell[0]?.x1 ?? 0) + (cell.at(-1)?.x2 ?? 0)) / 2),
    filled.map((cell) => decimalPointOf(cell)),
  ]
  return edges.some((positions) => agreement(positions) >= filled.length * LEAST_ALIGNED_SHARE)
}

function decimalPointOf(cell: Cell): number {
  const last = cell.at(-1)
  if (last === undefined) return NaN
  const point = last.text.search(/[.,]\d+\D*$/)
  return point < 0 ? last.x2 : last.x1 + ((last.x2 - last.x1) * point) / last.text.length
}

/** The most positions that lie within the tolerance of each other. */
function agreement(positions: readonly number[]): number {
  const sorted = positions.filter((position) => !Number.isNaN(position)).sort((a, b) => a - b)
  let best = 0
  let first = 0
  for (const [index, position] of sorted.entries()) {
    while (position - (sorted[first] ?? position) > ALIGNMENT_TOLERANCE * 2) first += 1
    best = Math.max(best, index - first + 1)
  }
  return best
}

const LEAST_ROWS = 3
/** Most distance of rows of one table, in em. */
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

/** Finds tables without rules in the rows of one region, by white space that runs through three rows or more. */
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
    if (isCaption(row)) break
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
  return !row.some(isLeaderLine) && !(row.length === 2 && isListMark(row[0]?.text ?? '')) && !isCaption(row)
}

/** Whether a row is a caption, whose number is often set apart like a cell. */
function isCaption(row: readonly Line[]): boolean {
  return CAPTION_PATTERN.test(row.map((piece) => piece.text).join(' '))
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

/** Whether a single piece continues a cell other than the first. */
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

function isFilled(rows: readonly (readonly Cell[])[]): boolean {
  const filled = rows.reduce((sum, row) => sum + filledCount(row), 0)
  return filled >= rows.length * (rows[0]?.length ?? 0) * LEAST_FILLED_SHARE
}

function extentOf(pieces: readonly Line[]): { x1: number; x2: number; top: number; bottom: number } {
  return {
    x1: pieces.reduce((least, piece) => Math.min(least, piece.x1), Infinity),
    x2: pieces.reduce((most, piece) => Math.max(most, piece.x2), -Infinity),
    top: pieces.reduce((least, piece) => Math.min(least, piece.top), Infinity),
    bottom: pieces.reduce((most, piece) => Math.max(most, piece.bottom), -Infinity),
  }
}

/** Whether most cells are as long as lines of text: columns of prose that were not recognised before. */
function isProse(rows: readonly (readonly Line[])[]): boolean {
  const long = rows.filter((row) => row.filter((piece) => piece.text.length > PROSE_LENGTH).length > 1)
  return long.length * 2 > rows.length
}

const MOST_HEAD_LINES = 4

/** Finds tables with horizontal rules only: three, as in books, or one below each row. */
export function takeOpenTables(pieces: readonly Line[], rules: readonly Stroke[], page: number): [Table[], Line[]] {
  const tables: Table[] = []
  let rest = [...pieces]
  for (const stack of stacksOf(rules)) {
    for (const bands of tabularBands(rest, stack)) {
      const table = tableOfBands(bands, page)
      if (table === undefined) continue
      tables.push(table)
      const taken = new Set(bands.flatMap((band) => band.pieces))
      rest = rest.filter((piece) => !taken.has(piece))
    }
  }
  return [tables, rest]
}

interface Band {
  readonly top: number
  readonly bottom: number
  readonly pieces: readonly Line[]
  readonly rows: readonly (readonly Line[])[]
}

/** Rules of the same extent, from the top. */
function stacksOf(rules: readonly Stroke[]): Stroke[][] {
  const stacks = new Map<string, Stroke[]>()
  for (const rule of [...rules].sort((a, b) => a.at - b.at)) {
    const key = `${String(Math.round(rule.from / 5))} ${String(Math.round(rule.to / 5))}`
    const stack = stacks.get(key)
    if (stack === undefined) stacks.set(key, [rule])
    else stack.push(rule)
  }
  return [...stacks.values()].filter((stack) => stack.length > 1 && stack.length < 300).slice(0, 50)
}

/** Neighbouring bands between rules that hold cells, not prose. */
function tabularBands(pieces: readonly Line[], stack: readonly Stroke[]): Band[][] {
  const [edge] = stack
  if (edge === undefined) return []
  const within = pieces.filter((piece) => piece.x1 > edge.from - 6 && piece.x2 < edge.to + 6)
  const groups: Band[][] = [[]]
  for (const [index, rule] of stack.slice(1).entries()) {
    const top = stack[index]?.at ?? rule.at
    const inside = within.filter((piece) => piece.y > top && piece.y < rule.at + RULE_TOLERANCE)
    const band = { top, bottom: rule.at, pieces: inside, rows: baselines(inside).map((row) => cellPieces(row)) }
    if (inside.length === 0 && rule.at - top < 8) continue
    if (isTabular(band)) groups.at(-1)?.push(band)
    else groups.push([])
  }
  return groups.filter((group) => group.length > 0)
}

function isTabular({ rows }: Band): boolean {
  const multiple = rows.filter((row) => row.length > 1).length
  const code = rows.filter((row) => row.every((piece) => piece.isFixedPitch)).length
  return multiple > 0 && multiple >= rows.length * 0.34 && code * 2 <= rows.length && !isProse(rows)
}

function tableOfBands(bands: readonly Band[], page: number): Table | undefined {
  const rows = bands.flatMap((band) => band.rows)
  const size = rows[0]?.[0]?.size ?? 10
  const columns = findColumns(rows, size * LEAST_CELL_GAP_EM * 0.9)
  if (columns.length < 2 || isCrossed(rows, columns)) return undefined
  const cells = rowsOfBands(bands, columns)
  if (cells.length < 2 || !isFilled(cells)) return undefined
  return {
    kind: 'table',
    page,
    rows: cells,
    ...extentOf(rows.flat()),
    top: bands[0]?.top ?? 0,
    bottom: bands.at(-1)?.bottom ?? 0,
  }
}

/** Lines of prose run over the columns that a few aligned ones among them would make. */
function isCrossed(rows: readonly (readonly Line[])[], columns: readonly Column[]): boolean {
  const crossing = rows.filter(([first, second]) => {
    if (first === undefined || second !== undefined) return false
    return columns.filter((column) => column.x1 < first.x2 && column.x2 > first.x1).length > 1
  })
  return crossing.length > rows.length * 0.2
}

function rowsOfBands(bands: readonly Band[], columns: readonly Column[]): Cell[][] {
  const lineCount = bands.reduce((sum, band) => sum + band.rows.length, 0)
  const isRulePerRow = bands.length >= 3 && bands.length * 2 >= lineCount
  return bands.flatMap((band, index) => {
    const lines = band.rows.map((row) => ({
      y: row[0]?.y ?? 0,
      size: row[0]?.size ?? 10,
      cells: cellsOfRow(row, columns),
    }))
    const isHead = index === 0 && bands.length > 1 && lines.length <= MOST_HEAD_LINES
    if (!isHead && !isRulePerRow) return groupRows(lines)
    return [columns.map((_, column) => lines.flatMap((line) => line.cells[column] ?? []))]
  })
}
