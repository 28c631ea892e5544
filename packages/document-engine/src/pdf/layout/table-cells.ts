import { firstCharacter } from '../../markdown/escape-markdown.js'
import type { Cell, Line, Span } from './layout-model.js'
import { isLowerCase } from './line-text.js'
import { gapBetween, makeLine, mergeLines, piecesOf } from './lines.js'

/** Spans of one cell as its lines, from the top. */
export function cellLines(spans: readonly Span[], page: number): Cell {
  return baselines(piecesOf(spans, page)).map((pieces) => mergeLines(pieces))
}

/** Pieces of one column by baseline, from the top; those of a baseline from the left. */
export function baselines(pieces: readonly Line[]): Line[][] {
  const rows: Line[][] = []
  let row: Line[] = []
  for (const piece of [...pieces].sort((a, b) => a.y - b.y)) {
    const [first] = row
    if (first !== undefined && piece.y - first.y > Math.min(piece.size, first.size) * 0.35) {
      rows.push(row)
      row = []
    }
    row.push(piece)
  }
  if (row.length > 0) rows.push(row)
  return rows.map((pieces) => pieces.sort((a, b) => a.x1 - b.x1))
}

/** Least distance of cells, in em: two cell margins of a narrow table. */
export const LEAST_CELL_GAP_EM = 0.5
/** Least distance in text of fixed pitch, whose blanks are 0.6 em wide. */
const LEAST_FIXED_PITCH_GAP_EM = 1.3
/** A line with blanks of nearly one width is justified text; gaps between cells rarely have one width. */
const LEAST_JUSTIFIED_GAPS = 4
const MOST_UNEVENNESS = 1.35
const MOST_JUSTIFIED_GAP_EM = 1.2

/** The pieces of one baseline cut wherever a column of a table might end, from the left. */
export function cellPieces(row: readonly Line[]): Line[] {
  return row.flatMap((piece) => cutPiece(piece)).sort((a, b) => a.x1 - b.x1)
}

function cutPiece(piece: Line): Line[] {
  const spans = [...piece.spans].sort((a, b) => a.x1 - b.x1)
  const gaps = spans.slice(1).map((span, index) => gapBefore(spans[index], span))
  const least = piece.size * (piece.isFixedPitch ? LEAST_FIXED_PITCH_GAP_EM : LEAST_CELL_GAP_EM)
  if (!gaps.some((gap) => gap >= least) || isJustified(gaps, piece.size)) return [piece]
  const groups: Span[][] = []
  for (const [index, span] of spans.entries()) {
    const isCut = index === 0 || (gaps[index - 1] ?? 0) >= least
    if (isCut) groups.push([span])
    else groups.at(-1)?.push(span)
  }
  return groups.map((group) => makeLine(group, piece.page))
}

function gapBefore(previous: Span | undefined, span: Span): number {
  return previous === undefined ? 0 : gapBetween(previous, span)
}

function isJustified(gaps: readonly number[], size: number): boolean {
  const blanks = gaps.filter((gap) => gap > size * 0.15)
  const least = blanks.reduce((min, gap) => Math.min(min, gap), Infinity)
  const most = blanks.reduce((max, gap) => Math.max(max, gap), 0)
  return blanks.length >= LEAST_JUSTIFIED_GAPS && most < size * MOST_JUSTIFIED_GAP_EM && most <= least * MOST_UNEVENNESS
}

/** One column of a table: where its text begins and ends. */
export interface Column {
  readonly x1: number
  readonly x2: number
}

const MOST_BINS = 600
/** Share of the rows with several pieces that may cross a gap between columns, such as spanning headers. */
const OUTLIER_SHARE = 0.12

/** Columns of the rows, from the left, separated by gaps that no piece crosses. `leastGap` in points. */
export function findColumns(rows: readonly (readonly Line[])[], leastGap: number): Column[] {
  const voters = rows.filter((row) => row.length > 1)
  const pieces = voters.flat()
  const x1 = pieces.reduce((least, piece) => Math.min(least, piece.x1), Infinity)
  const x2 = pieces.reduce((most, piece) => Math.max(most, piece.x2), -Infinity)
  if (!(x2 > x1)) return []
  const step = Math.max(1, (x2 - x1) / MOST_BINS)
  const counts = coverage(pieces, x1, step, Math.ceil((x2 - x1) / step) + 1)
  const mostCrossing = Math.floor(voters.length * OUTLIER_SHARE)
  const columns: Column[] = []
  let start: number | undefined
  let end = 0
  for (const [bin, count] of [...counts, 0].entries()) {
    if (count > mostCrossing) {
      if (start !== undefined && (bin - end - 1) * step >= leastGap) {
        columns.push({ x1: x1 + start * step, x2: x1 + (end + 1) * step })
        start = undefined
      }
      start ??= bin
      end = bin
    }
  }
  if (start !== undefined) columns.push({ x1: x1 + start * step, x2: x1 + (end + 1) * step })
  return columns
}

function coverage(pieces: readonly Line[], x1: number, step: number, bins: number): number[] {
  const changes = new Array<number>(bins + 1).fill(0)
  for (const piece of pieces) {
    const from = Math.max(0, Math.floor((piece.x1 - x1) / step))
    const to = Math.min(bins, Math.max(from + 1, Math.floor((piece.x2 - x1) / step)))
    changes[from] = (changes[from] ?? 0) + 1
    changes[to] = (changes[to] ?? 0) - 1
  }
  let covered = 0
  return changes.slice(0, bins).map((change) => (covered += change))
}

/** The pieces of one row by column. A piece over several columns is cut between its spans, or stays in the first column. */
export function cellsOfRow(row: readonly Line[], columns: readonly Column[]): Cell[] {
  const cells: Line[][] = columns.map(() => [])
  for (const piece of row) {
    for (const part of partsByColumn(piece, columns)) cells[part.column]?.push(part.line)
  }
  return cells
}

function partsByColumn(piece: Line, columns: readonly Column[]): { column: number; line: Line }[] {
  const touched = columns.filter((column) => Math.min(column.x2, piece.x2) - Math.max(column.x1, piece.x1) > 1)
  if (touched.length < 2) return [{ column: nearestColumn(piece, columns), line: piece }]
  const groups: Span[][] = []
  for (const span of [...piece.spans].sort((a, b) => a.x1 - b.x1)) {
    const last = groups.at(-1)
    const previous = last?.at(-1)
    const isCut = previous !== undefined && isColumnGap(previous, span, columns)
    if (last === undefined || isCut) groups.push([span])
    else last.push(span)
  }
  return groups.map((spans) => {
    const line = makeLine(spans, piece.page)
    return { column: nearestColumn(line, columns), line }
  })
}

function isColumnGap(a: Span, b: Span, columns: readonly Column[]): boolean {
  if (gapBetween(a, b) < b.size * 0.35) return false
  return columns.some((column, index) => {
    const next = columns[index + 1]
    return next !== undefined && a.x2 < next.x1 + 1 && b.x1 > column.x2 - 1
  })
}

/** The first column that the piece touches, else the nearest one. */
function nearestColumn(piece: Line, columns: readonly Column[]): number {
  let best = 0
  let bestDistance = Infinity
  for (const [index, column] of columns.entries()) {
    const distance = Math.max(column.x1 - piece.x2, piece.x1 - column.x2, -1)
    if (distance < bestDistance) [best, bestDistance] = [index, distance]
  }
  return best
}

/** White space that runs through all rows so far. */
export interface ColumnGap {
  readonly x1: number
  readonly x2: number
}

/** Between the pieces of a row, and what lies outside of them. */
export function gapsOfRow(row: readonly Line[]): ColumnGap[] {
  const gaps: ColumnGap[] = []
  let end = -Infinity
  for (const piece of row) {
    if (piece.x1 > end) gaps.push({ x1: end, x2: piece.x1 })
    end = Math.max(end, piece.x2)
  }
  return [...gaps, { x1: end, x2: Infinity }]
}

/** White space common to both, at least `leastWidth` wide. */
export function commonGaps(a: readonly ColumnGap[], b: readonly ColumnGap[], leastWidth: number): ColumnGap[] {
  const common: ColumnGap[] = []
  let at = 0
  for (const gap of a) {
    while ((b[at]?.x2 ?? Infinity) <= gap.x1) at += 1
    for (let index = at; (b[index]?.x1 ?? Infinity) < gap.x2; index += 1) {
      const other = b[index]
      if (other === undefined) break
      const x1 = Math.max(gap.x1, other.x1)
      const x2 = Math.min(gap.x2, other.x2)
      if (x2 - x1 >= leastWidth) common.push({ x1, x2 })
    }
  }
  return common
}

/** What lies between the gaps; the first and the last gap are the outside. */
export function columnsBetween(gaps: readonly ColumnGap[]): Column[] {
  return gaps.slice(1).map((gap, index) => ({ x1: gaps[index]?.x2 ?? 0, x2: gap.x1 }))
}

/** One baseline of a table, its pieces by column. */
interface Baseline {
  readonly y: number
  readonly size: number
  readonly cells: readonly Cell[]
}

/** Most distance of lines within a cell, in em, if the table distinguishes lines from rows. */
const ROW_PITCH_RATIO = 1.25
const TIGHT_LEADING_EM = 1.5

/** Baselines as rows: lines that continue cells above are added to them. */
export function groupRows(baselines: readonly Baseline[]): Cell[][] {
  const tight = tightPitch(baselines)
  const rows: Line[][][] = []
  for (const [index, baseline] of baselines.entries()) {
    const above = baselines[index - 1]
    const row = rows.at(-1)
    const isContinued = above !== undefined && row !== undefined && continues(above, baseline, tight)
    if (isContinued) appendCells(row, baseline.cells)
    else rows.push(baseline.cells.map((cell) => [...cell]))
  }
  return rows
}

function appendCells(row: readonly Line[][], cells: readonly Cell[]): void {
  for (const [column, cell] of cells.entries()) for (const line of cell) row[column]?.push(line)
}

export function filledCount(cells: readonly Cell[]): number {
  return cells.filter((cell) => cell.length > 0).length
}

function continues(above: Baseline, baseline: Baseline, tight: number | undefined): boolean {
  const distance = baseline.y - above.y
  if (tight !== undefined) return distance <= tight
  if (distance > baseline.size * TIGHT_LEADING_EM) return false
  const filled = filledCount(baseline.cells)
  const isWithoutHead = (baseline.cells[0]?.length ?? 0) === 0
  const isGoingOn = baseline.cells.every((cell) => isLowerCase(firstCharacter(cell[0]?.text ?? 'a')))
  return (
    (isWithoutHead && filled === 1 && baseline.cells.length > 1) || (isGoingOn && filled < filledCount(above.cells))
  )
}

/** The greatest distance of lines within a row, if rows are clearly further apart than lines. */
function tightPitch(baselines: readonly Baseline[]): number | undefined {
  const gaps = baselines.slice(1).map((baseline, index) => ({
    distance: baseline.y - (baselines[index]?.y ?? 0),
    filled: filledCount(baseline.cells),
  }))
  const sorted = gaps.map((gap) => gap.distance).sort((a, b) => a - b)
  const [least = 0] = sorted
  const limit = least * 1.12 + 0.5
  const tight = gaps.filter((gap) => gap.distance <= limit)
  const wide = gaps.filter((gap) => gap.distance > limit)
  if (tight.length === 0 || wide.length === 0) return undefined
  const leastWide = wide.reduce((most, gap) => Math.min(most, gap.distance), Infinity)
  const isTwoPitches = leastWide >= least * ROW_PITCH_RATIO && wide.length >= gaps.length * 0.3
  return isTwoPitches && meanFilled(tight) < meanFilled(wide) * 0.92 ? limit : undefined
}

function meanFilled(gaps: readonly { filled: number }[]): number {
  return gaps.reduce((sum, gap) => sum + gap.filled, 0) / gaps.length
}
