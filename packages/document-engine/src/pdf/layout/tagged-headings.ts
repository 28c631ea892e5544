import { type DocumentStyle, sizeClass } from './document-style.js'
import type { TextBlock } from './layout-model.js'

const LARGE_RATIO = 1.12

interface Look {
  readonly size: number
  readonly isBold: boolean
}

/**
 * Levels of the headings of a document with tags on some pages. What no tag calls a heading is one if it looks like a tagged
 * heading, or is larger than all of them: writers style titles by hand. Without tagged headings the layout decides alone.
 *
 * @param tagged levels by tags
 * @param seen levels by the layout, of any block
 */
export function taggedHeadings(
  tagged: ReadonlyMap<TextBlock, number>,
  seen: ReadonlyMap<TextBlock, number>,
  style: DocumentStyle,
): ReadonlyMap<TextBlock, number> {
  if (tagged.size === 0) return seen
  const levels = new Map(tagged)
  const known = levelsByLook(tagged)
  const [largest] = [...tagged].sort(([one], [other]) => sizeOf(other) - sizeOf(one))
  for (const block of seen.keys()) {
    if (levels.has(block)) continue
    const like = known.get(keyOf(lookOf(block)))
    if (like !== undefined) levels.set(block, like)
    else if (largest !== undefined && sizeOf(block) > Math.max(sizeOf(largest[0]), style.bodySize * LARGE_RATIO)) {
      levels.set(block, Math.max(1, largest[1] - 1))
    }
  }
  return levels
}

/** The level of most headings of each look. */
function levelsByLook(tagged: ReadonlyMap<TextBlock, number>): Map<string, number> {
  const counts = new Map<string, Map<number, number>>()
  for (const [block, level] of tagged) {
    const key = keyOf(lookOf(block))
    const levels = counts.get(key) ?? new Map<number, number>()
    counts.set(key, levels.set(level, (levels.get(level) ?? 0) + 1))
  }
  const usual = (levels: Map<number, number>): number =>
    [...levels].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]?.[0] ?? 1
  return new Map([...counts].map(([key, levels]) => [key, usual(levels)]))
}

function lookOf({ lines }: TextBlock): Look {
  return { size: sizeOf({ lines }), isBold: lines.every((line) => line.isBold) }
}

function sizeOf({ lines }: Pick<TextBlock, 'lines'>): number {
  return lines.reduce((most, line) => Math.max(most, sizeClass(line.size)), 0)
}

const keyOf = ({ size, isBold }: Look): string => `${String(size)} ${isBold ? 'bold' : ''}`
