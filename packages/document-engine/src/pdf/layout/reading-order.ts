import { firstCharacter } from '../../markdown/escape-markdown.js'
import { findAlignedTables } from './borderless-tables.js'
import { type Line, middleOf, type PageItem, type Region } from './layout-model.js'
import { isCjk, isLeaderLine, isLowerCase } from './line-text.js'
import { mergeLines } from './lines.js'
import { baselines } from './table-cells.js'

const LEAST_LINES_BESIDE = 3

/** The items on one side of a gutter, added from the top. */
class GutterSide {
  x1 = Infinity
  x2 = -Infinity
  top = Infinity
  bottom = -Infinity
  rows = 0
  size = 10
  private inked = 0
  private characters = 0
  private lines = 0
  private lowerCaseStarts = 0
  private closeRows = 0
  private tables = 0
  private fixedPitchLines = 0
  private lastMiddle = -Infinity

  add(item: PageItem): void {
    const middle = middleOf(item)
    if (item.kind === 'line') this.addLine(item, middle)
    else this.tables += 1
    this.lastMiddle = Math.max(this.lastMiddle, middle)
    this.x1 = Math.min(this.x1, item.x1)
    this.x2 = Math.max(this.x2, item.x2)
    this.top = Math.min(this.top, item.top)
    this.bottom = Math.max(this.bottom, item.bottom)
  }

  private addLine(line: Line, middle: number): void {
    const distance = middle - this.lastMiddle
    const isLeader = isLeaderLine(line)
    if (distance > line.size * 0.5) {
      this.rows += 1
      if (distance < line.size * 1.7 || isLeader) this.closeRows += 1
    }
    this.size = line.size
    this.inked += line.x2 - line.x1
    this.characters += line.text.length
    this.lines += 1
    const first = firstCharacter(line.text)
    if (isLowerCase(first) || isCjk(first) || isLeader) this.lowerCaseStarts += 1
    if (line.isFixedPitch && !isLeader) this.fixedPitchLines += 1
  }

  /** Whether a side is prose: lines fill it, follow closely, and often begin within a sentence. */
  isProse(): boolean {
    if (this.lines === 0) return this.tables > 0
    const isLong = this.characters / this.lines >= 12
    const isFilled = this.inked >= this.rows * (this.x2 - this.x1) * 0.52
    return isLong && isFilled && this.isClose() && this.lowerCaseStarts >= this.lines * 0.15
  }

  isTall(): boolean {
    return this.rows >= LEAST_LINES_BESIDE || this.tables > 0
  }

  isCode(): boolean {
    return this.fixedPitchLines * 2 > this.lines
  }

  isDense(): boolean {
    return this.isClose() && this.characters / Math.max(1, this.rows) >= 5 && this.lines <= this.rows * 1.5
  }

  private isClose(): boolean {
    return this.closeRows >= this.rows * 0.5
  }
}

/** Most indent of a list in its column, in points. */
const MOST_INDENT = 60
/** The edge of a column replaces that of a region if so many times more lines keep it. */
const LEAST_WEIGHT_RATIO = 4

interface WeightedEdge {
  readonly at: number
  weight: number
}

/**
 * Gives each region the edges of its column. A region with only a list or two short lines does not show them, but regions at
 * the same place on other pages do.
 */
export function withColumnEdges(regions: readonly Region[]): Region[] {
  const lefts = edges(regions.map((region) => [region.left, linesIn(region)]))
  const withLeft = regions.map((region) => ({ ...region, left: leftEdge(region, lefts) }))
  const byLeft = new Map<number, Region[]>()
  for (const region of withLeft) {
    const key = Math.round(region.left / 2)
    byLeft.set(key, [...(byLeft.get(key) ?? []), region])
  }
  const rights = new Map([...byLeft].map(([key, group]) => [key, commonRight(group)]))
  return withLeft.map((region) => {
    const right = rights.get(Math.round(region.left / 2)) ?? region.right
    return { ...region, right: Math.max(region.right, right) }
  })
}

function linesIn(region: Region): number {
  return region.items.filter((item) => item.kind === 'line').length
}

function edges(pairs: readonly (readonly [number, number])[]): WeightedEdge[] {
  const found: WeightedEdge[] = []
  for (const [at, weight] of [...pairs].sort((a, b) => a[0] - b[0])) {
    const last = found.at(-1)
    if (last !== undefined && at - last.at < 2) last.weight += weight
    else found.push({ at, weight })
  }
  return found
}

function leftEdge(region: Region, lefts: readonly WeightedEdge[]): number {
  const own = lefts.findLast((edge) => edge.at <= region.left)
  let best = own
  for (const edge of lefts) {
    if (edge.at > region.left || edge.at < region.left - MOST_INDENT) continue
    if (edge.weight > (best?.weight ?? 0) && edge.weight >= (own?.weight ?? 0) * LEAST_WEIGHT_RATIO) best = edge
  }
  return best === own ? region.left : (best?.at ?? region.left)
}

/** The right edge that half of the lines do not pass. */
function commonRight(group: readonly Region[]): number {
  const sorted = [...group].sort((a, b) => a.right - b.right)
  const half = sorted.reduce((sum, region) => sum + linesIn(region), 0) / 2
  let lines = 0
  for (const region of sorted) {
    lines += linesIn(region)
    if (lines >= half) return region.right
  }
  return -Infinity
}

const MOST_DEPTH = 12
/** Most items of a page on which gutters are searched; a page with more is no text. */
const MOST_ITEMS = 4_000
const GUTTER_STEPS = 160
const LEAST_GUTTER_EM = 0.75

/** The items in reading order, one list for each stretch of a column. */
function readingOrder(items: readonly PageItem[]): PageItem[][] {
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

/** Stretches of columns in the order of reading, with whole lines and all tables. */
export function regionsOf(items: readonly PageItem[], page: number): Region[] {
  return readingOrder(items).map((column) => regionOf(column, page))
}

function regionOf(column: readonly PageItem[], page: number): Region {
  const tables = column.filter((item) => item.kind === 'table')
  const rows = baselines(column.filter((item) => item.kind === 'line'))
  const items: PageItem[] = [...tables]
  for (const stretch of stretchesBetween(rows, tables)) {
    for (const found of findAlignedTables(stretch, page)) {
      items.push('kind' in found ? found : mergeLines(found))
    }
  }
  items.sort((a, b) => a.top - b.top)
  const lines = items.filter((item) => item.kind === 'line')
  return { page, items, ...edgesOf(lines.length === 0 ? items : lines) }
}

/** Aligned tables do not run over tables with rules. */
function stretchesBetween(rows: readonly Line[][], tables: readonly PageItem[]): Line[][][] {
  const stops = tables.map((table) => table.top).sort((a, b) => a - b)
  const stretches: Line[][][] = [[]]
  let next = 0
  for (const row of rows) {
    const y = row[0]?.y ?? 0
    if (y > (stops[next] ?? Infinity)) {
      stretches.push([])
      while (y > (stops[next] ?? Infinity)) next += 1
    }
    stretches.at(-1)?.push(row)
  }
  return stretches
}

function edgesOf(items: readonly PageItem[]): { left: number; right: number } {
  const lefts = items.map((item) => item.x1).sort((a, b) => a - b)
  const rights = items.map((item) => item.x2).sort((a, b) => a - b)
  return { left: lefts[0] ?? 0, right: rights.at(-1) ?? 0 }
}
