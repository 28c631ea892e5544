import { CAPTION_PATTERN } from './captions.js'
import { hasLetter } from './characters.js'
import { type DocumentStyle, sizeClass } from './document-style.js'
import { type HeadingLook, levelsOf } from './heading-levels.js'
import type { Block, TextBlock } from './layout-model.js'
import { isLeaderLine } from './leaders.js'
import { flowText } from './line-text.js'
import type { OutlineEntry } from './pdf-page.js'

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

/** Half a point is enough for a short line that stands alone. */
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

/** The document's own table of contents; titles that come more than once are taken in their order. */
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

/** Numbers, blanks and case differ between the table of contents and the page. */
function comparable(title: string): string {
  const text = title.toLowerCase().replace(/^[\d.\s]+/u, '')
  return text.replace(/[^\p{L}\p{N}]+/gu, '')
}

/** Names below the title are a little larger than the text, and only there. */
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
