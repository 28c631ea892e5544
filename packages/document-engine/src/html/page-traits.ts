import { bitsOf, FOREIGN_GROUPS, WORD_GROUPS, type WordGroup } from './class-words.js'
import type { HtmlElement } from './html-node.js'
import type { HtmlTree } from './html-parser.js'
import { type Container, isProse, type PageBlocks, type TextBlock } from './text-blocks.js'

export const PLACES = ['article', 'main', 'header', 'footer', 'nav', 'aside', 'form', 'figure', 'dialog'] as const

export interface ContainerTraits {
  /** Bit n is set below an element that is `PLACES[n]` by its tag or role. */
  readonly places: number
  readonly isArticleBody: boolean
  /** Containers between this one and the nearest that has a word of `WORD_GROUPS[n]`; at most `NO_WORD`. */
  readonly distances: Uint8Array
}

export const NO_WORD = 20

const PLACE_BY_ROLE: ReadonlyMap<string, (typeof PLACES)[number]> = new Map([
  ['article', 'article'],
  ['main', 'main'],
  ['banner', 'header'],
  ['contentinfo', 'footer'],
  ['navigation', 'nav'],
  ['menu', 'nav'],
  ['menubar', 'nav'],
  ['complementary', 'aside'],
  ['dialog', 'dialog'],
  ['alertdialog', 'dialog'],
])
const ARTICLE_BODY = /articleBody|reviewBody|^text$/

/** Traits of each container, derived from those around it. `containers` lists outer ones first. */
function containerTraits(containers: readonly Container[]): ReadonlyMap<Container, ContainerTraits> {
  const traits = new Map<Container, ContainerTraits>()
  for (const container of containers) {
    const outer = container.parent === null ? undefined : traits.get(container.parent)
    traits.set(container, {
      places: (outer?.places ?? 0) | placesOf(container.element),
      isArticleBody: (outer?.isArticleBody ?? false) || ARTICLE_BODY.test(container.element.attribute('itemprop')),
      distances: distancesFrom(container.groups, outer?.distances),
    })
  }
  return traits
}

function placesOf(element: HtmlElement): number {
  let places = 0
  const byRole = PLACE_BY_ROLE.get(element.attribute('role'))
  for (const [index, place] of PLACES.entries()) {
    if (place === element.localName || place === byRole) places |= 1 << index
  }
  return element.attribute('aria-modal') === 'true' ? places | (1 << PLACES.indexOf('dialog')) : places
}

function distancesFrom(groups: number, outer: Uint8Array | undefined): Uint8Array {
  return Uint8Array.from(WORD_GROUPS, (_, index) => {
    if (((groups >> index) & 1) === 1) return 0
    return outer === undefined ? NO_WORD : Math.min(NO_WORD, (outer[index] ?? NO_WORD) + 1)
  })
}

interface ContentScores {
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
/** Elements that count as one paragraph; their points go to the parent. */
const PARAGRAPH_TAG = /^(?:p|pre|td|li|h[1-6]|blockquote|dd|section)$/

/**
 * Points of each container for the paragraphs close below it, in the manner of the reader modes of browsers: long text
 * and commas count, links take away.
 */
function contentScores({ body, blocks }: PageBlocks): ContentScores {
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

/** Traits of the text of a block that do not depend on the language. */
export interface LineTraits {
  readonly length: number
  readonly words: number
  readonly linkedShare: number
  /** Share of the letters. */
  readonly upperShare: number
  /** Share of the words. */
  readonly capitalizedShare: number
  readonly sentences: number
  readonly endsSentence: boolean
  readonly isProse: boolean
  /** 0 for a block that is no heading. */
  readonly headingLevel: number
}

const LETTER = /\p{L}/gu
const UPPER = /\p{Lu}/gu
const CAPITALIZED = /(?:^|\s)\p{Lu}/gu
const SENTENCE_END = /[.!?](?=\s|$|["'”’)])|[。！？]/g
const LAST_SENTENCE_END = /[.!?。！？…]["'”’)]?$/
const HEADING = /^h([1-6])$/

function lineTraits(block: TextBlock): LineTraits {
  const { text } = block
  const words = countOf(text, / /g) + 1
  const letters = countOf(text, LETTER)
  return {
    length: text.length,
    words,
    linkedShare: block.linkedLength / text.length,
    upperShare: letters === 0 ? 0 : countOf(text, UPPER) / letters,
    capitalizedShare: countOf(text, CAPITALIZED) / words,
    sentences: countOf(text, SENTENCE_END),
    endsSentence: LAST_SENTENCE_END.test(text.slice(-3)),
    isProse: isProse(block),
    headingLevel: headingLevel(block),
  }
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}

/** A heading may hold a block of its own. */
function headingLevel({ container }: TextBlock): number {
  for (const element of [container.element, container.parent?.element]) {
    const level = HEADING.exec(element?.localName ?? '')?.[1]
    if (level !== undefined) return Number(level)
  }
  return 0
}

/** Traits of a page that the features of its blocks are computed from. */
export interface PageTraits {
  readonly page: PageBlocks
  readonly lines: readonly LineTraits[]
  readonly containers: ReadonlyMap<Container, ContainerTraits>
  readonly scores: ContentScores
  /** The container with most points and its ancestors. */
  readonly aroundBest: ReadonlySet<Container>
  /** Indexes of the first and the last block in the best container. */
  readonly bestFrom: number
  readonly bestTo: number
  /** Index of the first block in an h1; -1 when there is none. */
  readonly titleAt: number
  readonly proseBlocks: number
  /** Share of the prose that is in containers named after comments or forums. */
  readonly commentShare: number
  readonly forumShare: number
  /** In characters. */
  readonly proseBeforeComments: number
  readonly articles: number
  /** Metadata of the page. */
  readonly saysArticle: boolean
  readonly hasArticleData: boolean
  readonly hasProductData: boolean
  readonly occurrences: ReadonlyMap<string, number>
}

const ARTICLE_DATA = /"(?:News|Blog|Opinion|Tech|Scholarly)?(?:Article|Posting)"/
const PRODUCT_DATA = /"@type"\s{0,9}:\s{0,9}"Product"/

export function pageTraits(tree: HtmlTree, page: PageBlocks): PageTraits {
  const lines = page.blocks.map(lineTraits)
  const scores = contentScores(page)
  const aroundBest = new Set(ancestorsOf(scores.best))
  const inBest = page.blocks.map(({ container }) => isWithin(container, scores.best))
  const isMarked = (pattern: RegExp): boolean => tree.jsonLd.some((text) => pattern.test(text))
  const traits = containerTraits(page.containers)
  return {
    page,
    lines,
    containers: traits,
    scores,
    aroundBest,
    bestFrom: Math.max(0, inBest.indexOf(true)),
    bestTo: Math.max(0, inBest.lastIndexOf(true)),
    titleAt: lines.findIndex(({ headingLevel }) => headingLevel === 1),
    proseBlocks: lines.filter(({ isProse }) => isProse).length,
    ...proseShares(page, lines, traits),
    articles: page.containers.filter(({ element, blocks }) => element.localName === 'article' && blocks > 0).length,
    saysArticle: tree.head.some(
      (element) => /^og:type$/i.test(element.attribute('property')) && /article/i.test(element.attribute('content')),
    ),
    hasArticleData: isMarked(ARTICLE_DATA),
    hasProductData: isMarked(PRODUCT_DATA),
    occurrences: occurrencesOf(page),
  }
}

function proseShares(
  page: PageBlocks,
  lines: readonly LineTraits[],
  traits: ReadonlyMap<Container, ContainerTraits>,
): Pick<PageTraits, 'commentShare' | 'forumShare' | 'proseBeforeComments'> {
  const isNamed = (container: Container, group: WordGroup): boolean => {
    let named: Container | null = container
    const distance = traits.get(container)?.distances[WORD_GROUPS.indexOf(group)] ?? 0
    for (let level = 0; level < distance && named !== null; level += 1) named = named.parent
    return named !== null && ((named.groups >> WORD_GROUPS.indexOf(group)) & 1) === 1
  }
  let [comments, forum, before] = [0, 0, 0]
  let haveCommentsBegun = false
  for (const [index, { container, text }] of page.blocks.entries()) {
    const isComment = isNamed(container, 'comments')
    haveCommentsBegun ||= isComment
    if (lines[index]?.isProse !== true) continue
    if (isComment) comments += text.length
    if (isNamed(container, 'forum')) forum += text.length
    if (!haveCommentsBegun) before += text.length
  }
  const prose = Math.max(1, page.body.proseLength)
  return { commentShare: comments / prose, forumShare: forum / prose, proseBeforeComments: before }
}

function occurrencesOf(page: PageBlocks): Map<string, number> {
  const occurrences = new Map<string, number>()
  for (const { text } of page.blocks) occurrences.set(text, (occurrences.get(text) ?? 0) + 1)
  return occurrences
}

/** The container itself and all around it, the innermost first. */
export function ancestorsOf(container: Container): readonly Container[] {
  const ancestors: Container[] = []
  for (let above: Container | null = container; above !== null; above = above.parent) ancestors.push(above)
  return ancestors
}

function isWithin(container: Container, outer: Container): boolean {
  let above: Container | null = container
  while (above !== null && above.depth > outer.depth) above = above.parent
  return above === outer
}
