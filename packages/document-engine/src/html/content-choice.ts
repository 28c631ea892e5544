import { FEATURES, subjectsOf } from './block-features.js'
import { BASE_LOGIT, TREES } from './content-model.js'
import { fillGaps } from './content-floor.js'
import { completeParts, excludedBlocks, LONGEST_CELL } from './content-rules.js'
import type { HtmlElement } from './html-node.js'
import { isControlLabel } from './page-controls.js'
import { type PageTraits, PLACES } from './page-traits.js'
import type { Container, TextBlock } from './text-blocks.js'

const LEAF = -1
const SPLIT = /^(\d+)<(.+)$/

/** A decision tree as a flat array: a value below the threshold continues with the next entry, any other at `otherwise`. */
interface DecisionTree {
  readonly feature: Int16Array
  /** The threshold of a split, or what a leaf adds. */
  readonly value: Float64Array
  readonly otherwise: Int16Array
}

const FOREST: readonly DecisionTree[] = TREES.map(readDecisionTree)

/** The log-odds of each block to be content. */
function contentOdds(traits: PageTraits): Float64Array {
  const odds = new Float64Array(traits.lines.length)
  const row = new Float64Array(FEATURES.length)
  for (const subject of subjectsOf(traits)) {
    for (const [at, [, value]] of FEATURES.entries()) row[at] = value(subject)
    odds[subject.index] = FOREST.reduce((sum, tree) => sum + decide(tree, row), BASE_LOGIT)
  }
  return odds
}

function decide({ feature, value, otherwise }: DecisionTree, row: Float64Array): number {
  let at = 0
  for (;;) {
    const column = feature[at] ?? LEAF
    const limit = value[at] ?? 0
    if (column === LEAF) return limit
    at = (row[column] ?? 0) < limit ? at + 1 : (otherwise[at] ?? 0)
  }
}

function readDecisionTree(text: string): DecisionTree {
  const entries = text.split(' ')
  const tree = {
    feature: new Int16Array(entries.length),
    value: new Float64Array(entries.length),
    otherwise: new Int16Array(entries.length),
  }
  const readFrom = (at: number): number => {
    const split = SPLIT.exec(entries[at] ?? '')
    tree.feature[at] = split === null ? LEAF : Number(split[1])
    tree.value[at] = Number(split === null ? entries[at] : split[2])
    if (split === null) return at + 1
    const otherwise = readFrom(at + 1)
    tree.otherwise[at] = otherwise
    return readFrom(otherwise)
  }
  readFrom(0)
  return tree
}

/** Weight of a block's own odds; the rest is the mean of the blocks of the same form. */
const OWN_WEIGHT = 0.5
const FORM_LEVELS = 4
/** Expected F1 score from which on blocks with odds below `SURE_ODDS` are left out. */
const SURE_SCORE = 0.85
const SURE_ODDS = 0.5
/** Short lines take space as well. */
const LINE_LENGTH = 5
const NO_ODDS = -9
const NOT_TITLE = ['nav', 'footer', 'aside', 'dialog'] as const

export interface ContentChoice {
  /** Whether each block is content; the title is not. */
  readonly chosen: readonly boolean[]
  /** Index of the block that stands above the content as its title. */
  readonly title: number | undefined
}

/** Which blocks of a page are its content; at least one when the page has any. */
export function chooseContent(traits: PageTraits): ContentChoice {
  return chooseByOdds(traits, contentOdds(traits))
}

/** The choice for given odds, one of each block. */
export function chooseByOdds(traits: PageTraits, odds: Float64Array): ContentChoice {
  const { blocks } = traits.page
  const excluded = excludedBlocks(traits, odds)
  const shared = alike(
    blocks,
    odds.map((value, index) => (excluded[index] === true ? NO_ODDS : value)),
  )
  const least = leastOdds(blocks, shared)
  const chosen = shared.map((value) => value >= least)
  completeParts(traits, chosen)
  fillGaps(traits, excluded, chosen)
  for (const [index, { text, container }] of blocks.entries()) {
    if (isControlLabel(text, container.element.localName)) chosen[index] = false
  }
  mendHeadings(traits, chosen)
  return withTitle(traits, chosen)
}

/** Headings between two parts of the content belong to it. */
function mendHeadings({ lines }: PageTraits, chosen: boolean[]): void {
  let above = false
  for (let index = 0; index < lines.length; index += 1) {
    let end = index
    while (chosen[end] !== true && (lines[end]?.headingLevel ?? 0) > 1) end += 1
    if (above && chosen[end] === true) chosen.fill(true, index, end)
    above = chosen[end] === true
    index = end
  }
}

/** What looks alike is treated alike; the cells of a table are, all together. */
function alike(blocks: readonly TextBlock[], odds: Float64Array): number[] {
  const sums = new Map<string | HtmlElement, { odds: number; weight: number }>()
  const forms = blocks.map(formOf)
  for (const [index, form] of forms.entries()) {
    const weight = Math.sqrt(blocks[index]?.text.length ?? 0)
    const sum = sums.get(form) ?? { odds: 0, weight: 0 }
    sums.set(form, { odds: sum.odds + weight * (odds[index] ?? 0), weight: sum.weight + weight })
  }
  return forms.map((form, index) => {
    const own = odds[index] ?? 0
    const sum = sums.get(form)
    const average = sum === undefined ? own : sum.odds / sum.weight
    const weight = typeof form === 'string' ? OWN_WEIGHT : 0
    return weight * own + (1 - weight) * average
  })
}

function formOf({ container }: TextBlock): string | HtmlElement {
  const parts: string[] = []
  let outer: Container | null = container
  for (let level = 0; level < FORM_LEVELS && outer !== null; level += 1) {
    const { element } = outer
    if (element.localName === 'table' && isDataTable(outer)) return element
    parts.push(element.localName, level === 0 ? '' : (element.attribute('class').trim().split(/\s+/, 1)[0] ?? ''))
    outer = outer.parent
  }
  return parts.join(' ')
}

/** Not one that only lays out the page. */
function isDataTable({ textLength, blocks }: Container): boolean {
  return blocks > 1 && textLength / blocks < LONGEST_CELL
}

/**
 * Takes blocks by falling odds as long as the F1 score that the odds promise grows: that is, all that are likelier than
 * half of the score itself.
 */
function leastOdds(blocks: readonly TextBlock[], odds: readonly number[]): number {
  const falling = odds
    .map((value, index) => ({ value, length: (blocks[index]?.text.length ?? 0) + LINE_LENGTH }))
    .sort((one, other) => other.value - one.value)
  const expected = falling.reduce((sum, { value, length }) => sum + length * probability(value), 0)
  let [hits, taken, bestScore, least] = [0, 0, -1, 0]
  for (const { value, length } of falling) {
    hits += length * probability(value)
    taken += length
    const score = (2 * hits) / (taken + expected)
    if (score > bestScore) [bestScore, least] = [score, value]
  }
  const surest = falling[0]?.value ?? 0
  return bestScore >= SURE_SCORE ? Math.min(Math.max(least, SURE_ODDS), surest) : least
}

function probability(odds: number): number {
  return 1 / (1 + Math.exp(-odds))
}

/** The last h1 before the content is its title. Where there is none, a single one among the content stays there. */
function withTitle(traits: PageTraits, chosen: readonly boolean[]): ContentChoice {
  const isTitle = traits.lines.map(({ headingLevel }, index) => headingLevel === 1 && !isElsewhere(traits, index))
  const start = chosen.findIndex((isChosen, index) => isChosen && isTitle[index] !== true)
  const title = isTitle.lastIndexOf(true, start)
  if (start >= 0 && title >= 0) return { chosen: chosen.map((isChosen, index) => isChosen && index !== title), title }
  const only = isTitle.indexOf(true)
  const isMissing = start >= 0 && only > start && !isTitle.some((is, index) => is && chosen[index] === true)
  return { chosen: isMissing ? chosen.map((isChosen, index) => isChosen || index === only) : chosen, title: undefined }
}

function isElsewhere({ page, containers }: PageTraits, index: number): boolean {
  const block = page.blocks[index]
  const places = block === undefined ? 0 : (containers.get(block.container)?.places ?? 0)
  return block?.isHidden === true || NOT_TITLE.some((place) => ((places >> PLACES.indexOf(place)) & 1) === 1)
}
