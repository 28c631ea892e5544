import { bitsOf, FOREIGN_GROUPS, WORD_GROUPS, wordGroups } from './class-words.js'
import { contentRoot, LONGEST_CELL } from './content-rules.js'
import { type PageTraits, PLACES } from './page-traits.js'
import type { Container, TextBlock } from './text-blocks.js'

const FOREIGN_PLACE_BITS = bitsOf(PLACES, ['header', 'footer', 'nav', 'aside', 'form', 'dialog'])
const FOREIGN_GROUP_BITS = bitsOf(WORD_GROUPS, [...FOREIGN_GROUPS, 'about', 'reviews'])
const FOOTNOTE = /\b(?:foot|end)-?notes?\b/i
const TABLE_PART = /^(?:table|tbody|tr|td|th)$/
/** Their ids are made of titles: `<section id="privacy">` is about privacy, and not a notice of the site. */
const TITLED_TAG = /^(?:section|dl|dt|dd|ul|ol|p|pre|h[1-6])$/
const TITLED_CLASS = /\b(?:sect(?:ion)?\d?|refsect\d|chapter|part|appendix|level\d)\b/i

const QUOTATION_TAG = /^(?:blockquote|figure)$/
const SOURCE_TAG = /^(?:footer|figcaption|cite|p)$/

const LIST_TAG = /^(?:ul|ol|dl)$/
const STRUCTURE_TAG = /^(?:ul|ol|dl|table|pre|blockquote)$/
/** Share of links from which on a list is navigation; tables of the members of a program consist of links for the most part. */
const MOST_LINKED_OF_LIST = 0.6
/** … and up to which a list is content wherever it stands, unless the page is an article. */
const MOST_LINKED_OF_ITEMS = 0.2
const MOST_LINKED_OF_TABLE = 0.85
const LEAST_CELLS = 4
const MOSTLY = 0.5

const SHORTEST_SENTENCES = 100
const MOST_LINKED_OF_SENTENCES = 0.4
const SENTENCE_END = /[.!?:。！？…]["'”’)]*$/
const CAPTION_TAG = /^(?:figcaption|figure)$/

/**
 * Whatever their odds, sentences within the content are content, and lists, tables and quotations are kept or left out as a
 * whole: nothing is missing from the middle of a text.
 */
export function fillGaps(traits: PageTraits, excluded: readonly boolean[], chosen: boolean[]): void {
  const root = contentRoot(traits, chosen)
  if (root === undefined) return
  const { blocks } = traits.page
  const own = ownContainers(root, traits)
  const isOwn = blocks.map(({ container }, index) => own.has(container) && excluded[index] !== true)
  addSentences(traits, isOwn, chosen)
  addStructures(traits, own, isOwn, chosen)
}

/** Containers below the root, unless they or one between them and the root are marked as surroundings of the content. */
function ownContainers(root: Container, { page, containers }: PageTraits): ReadonlySet<Container> {
  const own = new Set<Container>([root])
  for (const container of page.containers) {
    const { parent, element } = container
    if (parent === null || !own.has(parent) || container.isInvisible) continue
    const places = (containers.get(container)?.places ?? 0) & ~(containers.get(parent)?.places ?? 0)
    const isForeign = (places & FOREIGN_PLACE_BITS) !== 0 || (groupsOf(container) & FOREIGN_GROUP_BITS) !== 0
    const isSource = QUOTATION_TAG.test(parent.element.localName) && SOURCE_TAG.test(element.localName)
    if (!isForeign || isSource || FOOTNOTE.test(element.attribute('class'))) own.add(container)
  }
  return own
}

function groupsOf({ element, groups }: Container): number {
  if (groups === 0 || TABLE_PART.test(element.localName)) return 0
  const names = element.attribute('class')
  const isTitled = TITLED_TAG.test(element.localName) || TITLED_CLASS.test(names)
  return isTitled && element.attribute('id') !== '' ? wordGroups(names) : groups
}

/** Around the content of an article its author, its sources and further offers are prose as well. */
function addSentences(traits: PageTraits, isOwn: readonly boolean[], chosen: boolean[]): void {
  const isArticle = traits.saysArticle || traits.hasArticleData
  const end = isArticle ? chosen.lastIndexOf(true) : chosen.length
  for (let index = isArticle ? chosen.indexOf(true) : 0; index < end; index += 1) {
    const block = traits.page.blocks[index]
    if (block !== undefined && isOwn[index] === true && isSentences(block)) chosen[index] = true
  }
}

function isSentences({ text, linkedLength, container }: TextBlock): boolean {
  if (text.length < SHORTEST_SENTENCES || linkedLength >= text.length * MOST_LINKED_OF_SENTENCES) return false
  return SENTENCE_END.test(text.slice(-4)) && !CAPTION_TAG.test(container.element.localName)
}

function addStructures(
  { page, saysArticle, hasArticleData }: PageTraits,
  own: ReadonlySet<Container>,
  isOwn: readonly boolean[],
  chosen: boolean[],
): void {
  const { blocks } = page
  const isManual = !saysArticle && !hasArticleData
  const structures = structuresIn(page.containers, own)
  for (let from = 0; from < blocks.length;) {
    const structure = structureAt(blocks, from, structures)
    let end = from + 1
    while (structure !== undefined && structureAt(blocks, end, structures) === structure) end += 1
    if (structure !== undefined) {
      const isAlone = isManual && isBareList(structure)
      const isWhole = isAlone || isKept(structure, chosen.slice(from, end), blocks.slice(from, end), chosen[from - 1])
      for (let index = from; index < end; index += 1) if (isWhole && isOwn[index] === true) chosen[index] = true
    }
    from = end
  }
}

/** The outermost list, table or quotation around each container that lies in one. */
function structuresIn(
  containers: readonly Container[],
  own: ReadonlySet<Container>,
): ReadonlyMap<Container, Container> {
  const structures = new Map<Container, Container>()
  for (const container of containers) {
    const outer = container.parent === null ? undefined : structures.get(container.parent)
    const isStructure = container.parent !== null && own.has(container.parent) && own.has(container)
    const structure = outer ?? (isStructure && STRUCTURE_TAG.test(container.element.localName) ? container : undefined)
    if (structure !== undefined) structures.set(container, structure)
  }
  return structures
}

function structureAt(
  blocks: readonly TextBlock[],
  index: number,
  structures: ReadonlyMap<Container, Container>,
): Container | undefined {
  const block = blocks[index]
  return block === undefined ? undefined : structures.get(block.container)
}

function isBareList({ element, blocks, linkedLength, textLength }: Container): boolean {
  return LIST_TAG.test(element.localName) && blocks > 1 && linkedLength <= textLength * MOST_LINKED_OF_ITEMS
}

function isKept(
  structure: Container,
  chosen: readonly boolean[],
  blocks: readonly TextBlock[],
  isChosenAbove: boolean | undefined,
): boolean {
  const isTable = structure.element.localName === 'table'
  const mostLinked = isTable ? MOST_LINKED_OF_TABLE : MOST_LINKED_OF_LIST
  if (structure.linkedLength > structure.textLength * mostLinked) return false
  if (isChosenAbove === true) return true
  if (isTable && blocks.length >= LEAST_CELLS && structure.textLength <= blocks.length * LONGEST_CELL) return true
  const length = blocks.reduce((sum, { text }, index) => sum + (chosen[index] === true ? text.length : 0), 0)
  return length > structure.textLength * MOSTLY
}
