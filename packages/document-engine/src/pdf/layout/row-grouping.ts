import { firstCharacter, isLowerCase } from './characters.js'
import type { Cell, Line } from './layout-model.js'

/** One baseline of a table, its pieces by column. */
interface Baseline {
  readonly y: number
  readonly size: number
  readonly cells: readonly Cell[]
}

/** Lines within a cell stand closer than rows, where the table tells them apart at all. */
const ROW_PITCH_RATIO = 1.25
const TIGHT_LEADING_EM = 1.5

/** Baselines as rows: lines that go on in the cells above are put there. */
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

/** The greatest distance of lines within a row, when rows stand clearly wider apart than lines. */
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
