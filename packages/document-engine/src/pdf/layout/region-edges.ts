import type { Region } from './layout-model.js'

/** In points: a list stands at most so far inside its column. */
const MOST_INDENT = 60
/** A column's edge is believed over the region's own when so many times more lines keep it. */
const LEAST_WEIGHT_RATIO = 4

interface WeightedEdge {
  readonly at: number
  weight: number
}

/**
 * Edges of the column each region stands in: a region that holds nothing but a list, or two short lines, does not show
 * them, but its like on other pages do.
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
