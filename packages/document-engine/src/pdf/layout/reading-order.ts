import { GutterSide, LEAST_LINES_BESIDE } from './gutter-side.js'
import { middleOf, type PageItem } from './layout-model.js'

const MOST_DEPTH = 12
/** Beyond it a page is no text, and looking for gutters is not worth the time. */
const MOST_ITEMS = 4_000
const GUTTER_STEPS = 160
const LEAST_GUTTER_EM = 0.75

/** The items in the order of reading, one list for each stretch of a column. */
export function readingOrder(items: readonly PageItem[]): PageItem[][] {
  const sorted = [...items].sort((a, b) => middleOf(a) - middleOf(b))
  return cut(sorted, 0)
}

interface Strip {
  readonly x: number
  readonly from: number
  readonly to: number
  readonly score: number
}

/** `items` from the top. A strip with a clear gutter parts what is above, left, right and below of it. */
function cut(items: readonly PageItem[], depth: number): PageItem[][] {
  if (items.length === 0) return []
  if (depth > MOST_DEPTH || items.length > MOST_ITEMS) return [[...items]]
  const strip = bestStrip(items)
  if (strip === undefined) return [[...items]]
  const within = items.slice(strip.from, strip.to)
  const isLeft = (item: PageItem): boolean => (item.x1 + item.x2) / 2 < strip.x
  return [
    ...cut(items.slice(0, strip.from), depth + 1),
    ...cut(within.filter(isLeft), depth + 1),
    ...cut(
      within.filter((item) => !isLeft(item)),
      depth + 1,
    ),
    ...cut(items.slice(strip.to), depth + 1),
  ]
}

function bestStrip(items: readonly PageItem[]): Strip | undefined {
  const left = items.reduce((least, item) => Math.min(least, item.x1), Infinity)
  const right = items.reduce((most, item) => Math.max(most, item.x2), -Infinity)
  const step = Math.max(2, (right - left) / GUTTER_STEPS)
  let best: Strip | undefined
  for (let x = left + step; x < right; x += step) {
    for (const strip of stripsAt(items, x)) if (strip.score > (best?.score ?? 0)) best = strip
  }
  return best
}

/** Stretches between items that cross `x`, where text stands on both sides of it. */
function stripsAt(items: readonly PageItem[], x: number): Strip[] {
  const strips: Strip[] = []
  let from = 0
  for (let index = 0; index <= items.length; index += 1) {
    const item = items[index]
    if (item !== undefined && (item.x1 >= x || item.x2 <= x)) continue
    if (index - from >= LEAST_LINES_BESIDE * 2) {
      const score = gutterScore(items.slice(from, index), x)
      if (score > 0) strips.push({ x, from, to: index, score })
    }
    from = index + 1
  }
  return strips
}

/** Lines that stand beside each other, when both sides read as text; otherwise 0. */
function gutterScore(items: readonly PageItem[], x: number): number {
  const left = new GutterSide()
  const right = new GutterSide()
  for (const item of items) (item.x1 < x ? left : right).add(item)
  if (!left.isTall() || !right.isTall()) return 0
  const overlap = Math.min(left.bottom, right.bottom) - Math.max(left.top, right.top)
  const least = Math.min(left.bottom - left.top, right.bottom - right.top)
  if (overlap < least * 0.5 || right.x1 - left.x2 < LEAST_GUTTER_EM * left.size) return 0
  if (!isPairOfColumns(left, right)) return 0
  return 1 + Math.min(left.rows, right.rows) + (right.x1 - left.x2) / 1000
}

function isPairOfColumns(left: GutterSide, right: GutterSide): boolean {
  if (left.isCode() && right.isCode()) return false
  if (left.isProse() && right.isProse()) return true
  const isWide = right.x1 - left.x2 > 1.2 * left.size && Math.min(left.rows, right.rows) >= 5
  return isWide && ((left.isProse() && right.isDense()) || (right.isProse() && left.isDense()))
}
