import { type DocumentStyle, sizeClass } from './document-style.js'
import type { Block, OutlineEntry, TextBlock } from './layout-model.js'
import { CAPTION_PATTERN, flowText, hasLetter, isLeaderLine } from './line-text.js'

/** Properties of a heading from which its level is derived. */
interface HeadingLook {
  readonly size: number
  readonly isBold: boolean
  readonly page: number
  /** Level by its number: 2 for `3.1`; 0 without a number. */
  readonly depth: number
  /** Level in the document's outline; 0 when it is not there. */
  readonly outlineLevel: number
}

const DEEPEST_LEVEL = 6

/**
 * Levels from 1 to 6 of headings in document order: by the outline, else by their numbers, else by comparing their size and
 * weight with those.
 */
function levelsOf(headings: readonly HeadingLook[]): number[] {
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

/** Orders looks: larger before smaller, bold before regular. */
function bySize(a: HeadingLook, b: HeadingLook): number {
  return b.size - a.size || Number(b.isBold) - Number(a.isBold)
}

/** 1 when the document title is a level of its own, larger than those of the first level; otherwise 0. */
function offsetOf(headings: readonly HeadingLook[], levelOf: (heading: HeadingLook) => number): number {
  const top = headings.filter((heading) => levelOf(heading) === 1).sort(bySize)[0]
  const [first] = headings
  if (first === undefined || top === undefined || levelOf(first) > 0) return 0
  return bySize(first, top) < 0 ? 1 : 0
}

/** Level of each look: the known level of most of its headings; looks in between are one level deeper each. */
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

/** The sizes of a title page are ignored, so that they do not move other headings to deeper levels. */
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

const LARGE_RATIO = 1.12
const CLEARLY_LARGE_RATIO = 1.35
const MOST_LINES = 4
const MOST_CHARACTERS = 220
const MOST_BOLD_CHARACTERS = 140
const MOST_SLIGHT_CHARACTERS = 70
const NUMBER_PATTERN = /^(?:(\d{1,3}(?:\.\d{1,3})*)\.?|[A-Z](?:\.\d{1,3})+\.?|[A-Z]\.|[IVX]{1,5}\.)\s+\p{L}/u

interface Candidate extends HeadingLook {
  readonly block: TextBlock
}

/** The headings among the blocks with their levels, from 1 to 6. */
export function headingLevels(
  blocks: readonly Block[],
  outline: readonly OutlineEntry[],
  style: DocumentStyle,
): Map<TextBlock, number> {
  const titles = new OutlineTitles(outline)
  const candidates = blocks.flatMap((block) => candidateOf(block, titles, style) ?? [])
  const headings = withoutBylines(candidates, style)
  const levels = levelsOf(headings)
  return new Map(headings.map((heading, index) => [heading.block, levels[index] ?? 1]))
}

function candidateOf(block: Block, titles: OutlineTitles, style: DocumentStyle): Candidate | undefined {
  if (block.kind !== 'text' || block.marker !== undefined || block.lines.length > MOST_LINES) return undefined
  const text = flowText(
    block.lines.map((line) => line.text),
    style.words,
  )
  if (!hasLetter(text) || text.length > MOST_CHARACTERS || CAPTION_PATTERN.test(text) || block.lines.some(isLeaderLine))
    return undefined
  const size = block.lines.reduce((most, line) => Math.max(most, sizeClass(line.size)), 0)
  const isBold = !style.isBodyBold && block.lines.every((line) => line.isBold)
  const isListed = titles.has(text)
  const isOutstanding = isBold || size >= style.bodySize * LARGE_RATIO || isSlightlyLarger(text, block, size, style)
  const isHeading = isListed
    ? isOutstanding || block.isSetOff
    : isOutstanding && readsAsHeading(text, block, size, style)
  if (!isHeading) return undefined
  return { block, page: block.page, size, isBold, depth: depthOf(text), outlineLevel: titles.take(text) }
}

/** Whether a short, separate line is at least half a point larger than the text. */
function isSlightlyLarger(text: string, block: TextBlock, size: number, style: DocumentStyle): boolean {
  return size > style.bodySize && block.isSetOff && block.lines.length === 1 && text.length <= MOST_SLIGHT_CHARACTERS
}

function readsAsHeading(text: string, block: TextBlock, size: number, style: DocumentStyle): boolean {
  if (size >= style.bodySize * CLEARLY_LARGE_RATIO) return true
  if (size < style.bodySize * 0.9 || text.length > MOST_BOLD_CHARACTERS || block.lines.length > 3) return false
  return !/[.,;:。，；：]$/u.test(text) || /^[\d.]+$/.test(text)
}

function depthOf(text: string): number {
  const number = NUMBER_PATTERN.exec(text)
  if (number === null) return 0
  return number[1] === undefined
    ? (text.split(' ')[0]?.replace(/\.$/, '').split('.').length ?? 1)
    : number[1].split('.').length
}

/** The document's outline; entries with equal titles are used in their order. */
class OutlineTitles {
  private readonly levels = new Map<string, number[]>()

  constructor(outline: readonly OutlineEntry[]) {
    for (const { title, level } of outline) {
      const key = comparable(title)
      const known = this.levels.get(key)
      if (known === undefined) this.levels.set(key, [level])
      else known.push(level)
    }
  }

  has(title: string): boolean {
    return this.levels.has(comparable(title))
  }

  /** The level of the next entry of this title; 0 when there is none. */
  take(title: string): number {
    const levels = this.levels.get(comparable(title)) ?? []
    return (levels.length > 1 ? levels.shift() : levels[0]) ?? 0
  }
}

/** Key of a title without numbers, blanks and case, which differ between the outline and the page. */
function comparable(title: string): string {
  const text = title.toLowerCase().replace(/^[\d.\s]+/u, '')
  return text.replace(/[^\p{L}\p{N}]+/gu, '')
}

/** Whether the lines are authors' names: a little larger than the text, below the title only. */
function withoutBylines(candidates: readonly Candidate[], style: DocumentStyle): Candidate[] {
  const isSlight = (one: Candidate): boolean => !one.isBold && one.size < style.bodySize * CLEARLY_LARGE_RATIO
  const elsewhere = new Set(
    candidates
      .filter((one) => one.page !== candidates[0]?.page || one.depth > 0 || one.outlineLevel > 0)
      .map((one) => styleKey(one)),
  )
  return candidates.filter((one, index) => index === 0 || !isSlight(one) || elsewhere.has(styleKey(one)))
}

function styleKey(heading: Candidate): string {
  return `${String(heading.size)} ${heading.isBold ? 'bold' : ''}`
}
