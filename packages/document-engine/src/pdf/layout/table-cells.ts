import type { Cell, Line, Span } from './layout-model.js'
import { gapBetween, makeLine } from './line-maker.js'

/** One column of a table: where its text begins and ends. */
export interface Column {
  readonly x1: number
  readonly x2: number
}

const MOST_BINS = 600
/** Of the rows with several pieces, so many may cross a gap between columns: spanning heads. */
const OUTLIER_SHARE = 0.12

/** Columns of text that no piece of the rows crosses, from the left. `leastGap` in points. */
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

/** The pieces of one row by column. A piece over several columns is cut where its spans part, or stays in the first. */
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

/** The first one touched; the nearest one when the piece stands between columns. */
function nearestColumn(piece: Line, columns: readonly Column[]): number {
  let best = 0
  let bestDistance = Infinity
  for (const [index, column] of columns.entries()) {
    const distance = Math.max(column.x1 - piece.x2, piece.x1 - column.x2, -1)
    if (distance < bestDistance) [best, bestDistance] = [index, distance]
  }
  return best
}
