import type { Rule } from './pdf-page.js'

/** Rules that meet within so many points belong together. */
export const RULE_TOLERANCE = 3
/** A page with more is a drawing. */
const MOST_RULES = 20_000
const MOST_MERGED_RULES = 2_500

/** `at` is the coordinate all of it shares; `from` and `to` run along it. */
export interface Stroke {
  readonly at: number
  readonly from: number
  readonly to: number
}

export interface Strokes {
  readonly horizontal: readonly Stroke[]
  readonly vertical: readonly Stroke[]
}

/** Rules of a page; dashes, double lines and the rules of single cells are put together. */
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
export function clusterPositions(values: readonly number[]): number[] {
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
