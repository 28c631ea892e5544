import type { Rule } from './layout-model.js'

/** Most distance, in points, of rules that meet. */
export const RULE_TOLERANCE = 3
/** Most rules of a page; one with more is a drawing. */
const MOST_RULES = 20_000
const MOST_MERGED_RULES = 2_500

/** A line: `at` is its constant coordinate, `from` and `to` are its ends. */
export interface Stroke {
  readonly at: number
  readonly from: number
  readonly to: number
}

interface Strokes {
  readonly horizontal: readonly Stroke[]
  readonly vertical: readonly Stroke[]
}

/** Rules of a page as strokes; dashes, double lines and the rules of single cells are joined. */
export function strokesOf(rules: readonly Rule[]): Strokes {
  if (rules.length > MOST_RULES) return { horizontal: [], vertical: [] }
  const isLevel = (rule: Rule): boolean => rule.x2 - rule.x1 >= rule.y2 - rule.y1
  const horizontal = mergeStrokes(
    rules.filter(isLevel).map((rule) => ({ at: (rule.y1 + rule.y2) / 2, from: rule.x1, to: rule.x2 })),
  )
  const vertical = mergeStrokes(
    rules.filter((rule) => !isLevel(rule)).map((rule) => ({ at: (rule.x1 + rule.x2) / 2, from: rule.y1, to: rule.y2 })),
  )
  const isDrawing = horizontal.length > MOST_MERGED_RULES || vertical.length > MOST_MERGED_RULES
  return isDrawing ? { horizontal: [], vertical: [] } : { horizontal, vertical }
}

function mergeStrokes(strokes: readonly Stroke[]): Stroke[] {
  const positions = clusterPositions(strokes.map((stroke) => stroke.at))
  const byPosition = new Map<number, Stroke[]>()
  for (const stroke of strokes) {
    const at = nearest(positions, stroke.at)
    const known = byPosition.get(at)
    if (known === undefined) byPosition.set(at, [stroke])
    else known.push(stroke)
  }
  return [...byPosition].flatMap(([at, group]) => mergeAlong(at, group)).filter((stroke) => stroke.to - stroke.from > 4)
}

function mergeAlong(at: number, strokes: Stroke[]): Stroke[] {
  const merged: Stroke[] = []
  for (const stroke of strokes.sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last !== undefined && stroke.from <= last.to + RULE_TOLERANCE) {
      merged[merged.length - 1] = { at, from: last.from, to: Math.max(last.to, stroke.to) }
    } else merged.push({ at, from: stroke.from, to: stroke.to })
  }
  return merged
}

/** Mean positions of values that lie within the tolerance of each other, ascending. */
function clusterPositions(values: readonly number[]): number[] {
  const clusters: number[] = []
  let group: number[] = []
  for (const value of [...values].sort((a, b) => a - b)) {
    const first = group[0]
    if (first !== undefined && value - first > RULE_TOLERANCE) {
      clusters.push(mean(group))
      group = []
    }
    group.push(value)
  }
  if (group.length > 0) clusters.push(mean(group))
  return clusters
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function nearest(sorted: readonly number[], value: number): number {
  const at = Math.max(1, indexAbove(sorted, value))
  const below = sorted[at - 1] ?? value
  const above = sorted[at] ?? below
  return value - below <= above - value ? below : above
}

/** Index of the first position above `value`; the length when there is none. `sorted` ascends. */
export function indexAbove(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? Infinity) > value) high = middle
    else low = middle + 1
  }
  return low
}

/** Rules that touch each other, as a grid: `xs` and `ys` are the positions of its lines, outer edges included. */
export interface Grid {
  readonly xs: readonly number[]
  readonly ys: readonly number[]
  /** Strokes of each of `ys`, and of each of `xs`. */
  readonly horizontalAt: readonly (readonly Stroke[])[]
  readonly verticalAt: readonly (readonly Stroke[])[]
}

const LEAST_OUTER_CELL = 8
const MOST_CELLS = 60_000

/** Grids of at least two columns; rules that touch no grid come back as `loose`. */
export function gridsOf(strokes: Strokes): { grids: Grid[]; loose: Stroke[] } {
  const groups = connectedStrokes(strokes)
  const grids: Grid[] = []
  const loose: Stroke[] = []
  for (const group of groups) {
    const grid = gridOf(group)
    if (grid === undefined) loose.push(...group.horizontal)
    else grids.push(grid)
  }
  return { grids, loose }
}

interface Group {
  readonly horizontal: Stroke[]
  readonly vertical: Stroke[]
}

function connectedStrokes({ horizontal, vertical }: Strokes): Group[] {
  const parents = Array.from({ length: horizontal.length + vertical.length }, (_, index) => index)
  const rootOf = (index: number): number => {
    let root = index
    while (parents[root] !== root) {
      parents[root] = parents[parents[root] ?? root] ?? root
      root = parents[root] ?? root
    }
    return root
  }
  for (const [row, level] of horizontal.entries()) {
    for (const [column, upright] of vertical.entries()) {
      if (isCrossing(level, upright)) parents[rootOf(row)] = rootOf(horizontal.length + column)
    }
  }
  const groups = new Map<number, Group>()
  const groupAt = (index: number): Group => {
    const root = rootOf(index)
    const group = groups.get(root) ?? { horizontal: [], vertical: [] }
    groups.set(root, group)
    return group
  }
  for (const [row, level] of horizontal.entries()) groupAt(row).horizontal.push(level)
  for (const [column, upright] of vertical.entries()) groupAt(horizontal.length + column).vertical.push(upright)
  return [...groups.values()]
}

function isCrossing(level: Stroke, upright: Stroke): boolean {
  return (
    upright.at >= level.from - RULE_TOLERANCE &&
    upright.at <= level.to + RULE_TOLERANCE &&
    level.at >= upright.from - RULE_TOLERANCE &&
    level.at <= upright.to + RULE_TOLERANCE
  )
}

function gridOf({ horizontal, vertical }: Group): Grid | undefined {
  if (horizontal.length < 2 || vertical.length < 1) return undefined
  const xs = withEdges(clusterPositions(vertical.map((stroke) => stroke.at)), horizontal)
  const ys = withEdges(clusterPositions(horizontal.map((stroke) => stroke.at)), vertical)
  if (xs.length < 3 || ys.length < 2 || xs.length * ys.length > MOST_CELLS) return undefined
  return { xs, ys, horizontalAt: strokesAt(ys, horizontal), verticalAt: strokesAt(xs, vertical) }
}

function strokesAt(positions: readonly number[], strokes: readonly Stroke[]): Stroke[][] {
  const found: Stroke[][] = positions.map(() => [])
  for (const stroke of strokes) found[indexAbove(positions, stroke.at + RULE_TOLERANCE) - 1]?.push(stroke)
  return found
}

/** Adds missing outer rules: the crossing rules then extend beyond the first and the last one. */
function withEdges(positions: readonly number[], across: readonly Stroke[]): number[] {
  const first = across.reduce((least, stroke) => Math.min(least, stroke.from), Infinity)
  const last = across.reduce((most, stroke) => Math.max(most, stroke.to), -Infinity)
  const all = [...positions]
  if ((all[0] ?? first) - first > LEAST_OUTER_CELL) all.unshift(first)
  if (last - (all.at(-1) ?? last) > LEAST_OUTER_CELL) all.push(last)
  return all
}

/** Whether at least half of the stretch from `from` to `to` is drawn by strokes on one line. */
export function isDrawn(strokes: readonly Stroke[] | undefined, from: number, to: number): boolean {
  let covered = 0
  for (const stroke of strokes ?? []) {
    covered += Math.max(0, Math.min(stroke.to, to) - Math.max(stroke.from, from))
  }
  return covered * 2 >= to - from
}
