import type { Cell } from './layout-model.js'

const LEAST_ALIGNED_SHARE = 0.6
const ALIGNMENT_TOLERANCE = 2.5

/** Starts, ends, middles or decimal points of the column's cells agree. */
export function isAligned(cells: readonly Cell[]): boolean {
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

/** How many of the positions lie within the tolerance of each other. */
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
