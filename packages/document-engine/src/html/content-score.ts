import { FOREIGN_GROUPS, WORD_GROUPS } from './class-words.js'
import { bitsOf } from './name-bits.js'
import type { Container, PageBlocks, TextBlock } from './page-blocks.js'

export interface ContentScores {
  readonly byContainer: ReadonlyMap<Container, number>
  readonly best: Container
  /** At least 1. */
  readonly bestScore: number
}

const SHORTEST_COUNTED = 25
const LEVELS = 5
const WORD_SCORE = 25
const AGAINST_BITS = bitsOf(WORD_GROUPS, [...FOREIGN_GROUPS, 'about', 'media', 'hidden'])
const FOR_BITS = bitsOf(WORD_GROUPS, ['body'])
const TAG_SCORES: ReadonlyMap<string, number> = new Map([
  ['div', 5],
  ...['pre', 'td', 'blockquote'].map((tag) => [tag, 3] as const),
  ...['address', 'ol', 'ul', 'dl', 'dd', 'dt', 'li', 'form'].map((tag) => [tag, -3] as const),
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'th'].map((tag) => [tag, -5] as const),
])
/** Elements that are one paragraph: what they hold speaks for the element around them. */
const PARAGRAPH_TAG = /^(?:p|pre|td|li|h[1-6]|blockquote|dd|section)$/

/**
 * Points of each container for the paragraphs close below it, in the manner of the reader modes of browsers: long text
 * and commas count, links take away.
 */
export function contentScores({ body, blocks }: PageBlocks): ContentScores {
  const byContainer = new Map<Container, number>()
  for (const block of blocks) if (isCounted(block)) addPoints(block, byContainer)
  let best = body
  let bestScore = -Infinity
  for (const [container, points] of byContainer) {
    const score = points * (1 - container.linkedLength / Math.max(1, container.textLength))
    byContainer.set(container, score)
    if (score > bestScore) [best, bestScore] = [container, score]
  }
  return { byContainer, best, bestScore: Math.max(1, bestScore) }
}

function isCounted(block: TextBlock): boolean {
  return block.text.length >= SHORTEST_COUNTED && !block.isHidden
}

function addPoints({ container, text }: TextBlock, scores: Map<Container, number>): void {
  const points = 2 + (text.match(/[,،、，]/g)?.length ?? 0) + Math.min(Math.floor(text.length / 100), 3)
  let above = PARAGRAPH_TAG.test(container.element.localName) ? container.parent : container
  for (let level = 0; level < LEVELS && above !== null; level += 1) {
    const before = scores.get(above) ?? initialScore(above)
    scores.set(above, before + points / divider(level))
    above = above.parent
  }
}

function divider(level: number): number {
  return level < 2 ? level + 1 : level * 3
}

function initialScore({ element, groups }: Container): number {
  const words = ((groups & FOR_BITS) === 0 ? 0 : WORD_SCORE) - ((groups & AGAINST_BITS) === 0 ? 0 : WORD_SCORE)
  return (TAG_SCORES.get(element.localName) ?? 0) + words
}
