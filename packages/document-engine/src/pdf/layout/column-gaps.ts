import type { Line } from './layout-model.js'
import type { Column } from './table-cells.js'

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
