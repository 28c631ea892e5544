/** What is known about a heading before its level is. */
export interface HeadingLook {
  readonly size: number
  readonly isBold: boolean
  readonly page: number
  /** Of its number: 2 for `3.1`; 0 when it has none. */
  readonly depth: number
  /** By the document's own table of contents; 0 when it is not there. */
  readonly outlineLevel: number
}

const DEEPEST_LEVEL = 6

/**
 * Levels from 1 to 6 for headings in the order of the document: by its table of contents, by their numbers, and for the
 * rest by their looks among those.
 */
export function levelsOf(headings: readonly HeadingLook[]): number[] {
  const looks = [...new Map(headings.map((heading) => [lookOf(heading), heading])).values()].sort(bySize)
  const outlineOffset = offsetOf(headings, (heading) => heading.outlineLevel)
  const numberOffset = offsetOf(headings, (heading) => heading.depth)
  const known = headings.map((heading) => {
    if (heading.outlineLevel > 0) return heading.outlineLevel + outlineOffset
    return heading.depth > 0 ? heading.depth + numberOffset : 0
  })
  const levelsByLook = lookLevels(looks, headings, known)
  return headings.map((heading, index) => {
    const level = known[index] === 0 ? levelsByLook.get(lookOf(heading)) : known[index]
    return Math.min(DEEPEST_LEVEL, Math.max(1, level ?? 1))
  })
}

function lookOf(heading: HeadingLook): string {
  return `${String(heading.size)} ${heading.isBold ? 'bold' : ''}`
}

/** Larger before smaller, bold before regular. */
function bySize(a: HeadingLook, b: HeadingLook): number {
  return b.size - a.size || Number(b.isBold) - Number(a.isBold)
}

/** 1 when a title stands above those of the first level: larger, and itself not among them. */
function offsetOf(headings: readonly HeadingLook[], levelOf: (heading: HeadingLook) => number): number {
  const top = headings.filter((heading) => levelOf(heading) === 1).sort(bySize)[0]
  const [first] = headings
  if (first === undefined || top === undefined || levelOf(first) > 0) return 0
  return bySize(first, top) < 0 ? 1 : 0
}

/** For each look the level most of its headings are known to have; between them one level deeper at each step. */
function lookLevels(
  looks: readonly HeadingLook[],
  headings: readonly HeadingLook[],
  known: readonly number[],
): Map<string, number> {
  const levels = new Map<string, number>()
  let level = 0
  for (const look of looks) {
    const key = lookOf(look)
    const own = headings.map((heading, index) => (lookOf(heading) === key ? (known[index] ?? 0) : 0))
    const usual = mostFrequent(own.filter((one) => one > 0))
    const isOfTitlePage = level > 0 && isOnlyOnPage(headings, key, headings[0]?.page)
    if (usual !== undefined) level = usual
    else if (!isOfTitlePage) level += 1
    levels.set(key, usual === undefined && isOfTitlePage ? level + 1 : level)
  }
  return levels
}

/** A title page has sizes of its own; they push nothing down. */
function isOnlyOnPage(headings: readonly HeadingLook[], look: string, page: number | undefined): boolean {
  const isElsewhere = headings.some((heading) => heading.page !== page)
  return isElsewhere && headings.every((heading) => lookOf(heading) !== look || heading.page === page)
}

function mostFrequent(values: readonly number[]): number | undefined {
  const counts = new Map<number, number>()
  let best: number | undefined
  for (const value of values) {
    counts.set(value, (counts.get(value) ?? 0) + 1)
    if ((counts.get(value) ?? 0) > (counts.get(best ?? 0) ?? 0)) best = value
  }
  return best
}
