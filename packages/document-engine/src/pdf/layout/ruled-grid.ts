import { clusterPositions, indexAbove, RULE_TOLERANCE, type Stroke, type Strokes } from './rule-geometry.js'

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

/** Tables often leave out their outer rules: the rules across then stand out beyond the first and the last. */
function withEdges(positions: readonly number[], across: readonly Stroke[]): number[] {
  const first = across.reduce((least, stroke) => Math.min(least, stroke.from), Infinity)
  const last = across.reduce((most, stroke) => Math.max(most, stroke.to), -Infinity)
  const all = [...positions]
  if ((all[0] ?? first) - first > LEAST_OUTER_CELL) all.unshift(first)
  if (last - (all.at(-1) ?? last) > LEAST_OUTER_CELL) all.push(last)
  return all
}

/** At least half of the stretch from `from` to `to` is drawn; the strokes lie on one line. */
export function isDrawn(strokes: readonly Stroke[] | undefined, from: number, to: number): boolean {
  let covered = 0
  for (const stroke of strokes ?? []) {
    covered += Math.max(0, Math.min(stroke.to, to) - Math.max(stroke.from, from))
  }
  return covered * 2 >= to - from
}
