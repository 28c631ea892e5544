import { bitsOf, FOREIGN_GROUPS, WORD_GROUPS } from './class-words.js'
import { ancestorsOf, type PageTraits, PLACES } from './page-traits.js'
import { type Container, isPanel, type PageBlocks, type TextBlock } from './text-blocks.js'

/**
 * A page hides text on purpose when its visible blocks of this length have so many characters, and such a share of the
 * hidden ones. Otherwise a script would show the hidden text.
 */
const LONG_BLOCK = 100
const LEAST_SEEN = 500
const LEAST_SEEN_SHARE = 0.2
/** The same holds for a page with so many times more visible than hidden text. */
const MOSTLY_SEEN = 2
const LEAST_ARTICLE_LENGTH = 300
const MOST_FORUM_SHARE = 0.3
const COMMENTS = 1 << WORD_GROUPS.indexOf('comments')

/** Blocks that are excluded whatever their odds: hidden ones, and comments below an article. */
export function excludedBlocks(traits: PageTraits, odds: Float64Array): readonly boolean[] {
  const { blocks } = traits.page
  const isHiding = hidesOnPurpose(traits)
  const hasSmallSecrets = isMostlySeen(traits)
  const isComment = commentsOf(traits, odds)
  const panels = new Map<Container, boolean>()
  const isInPanel = ({ container }: TextBlock): boolean => {
    const known = panels.get(container) ?? ancestorsOf(container).some(({ element }) => isPanel(element))
    panels.set(container, known)
    return known
  }
  return blocks.map((block, index) => {
    const isLeftOut = (isHiding && block.isHidden) || (hasSmallSecrets && block.isInvisible)
    return isComment[index] === true || (isLeftOut && !isInPanel(block))
  })
}

function hidesOnPurpose({ page }: PageTraits): boolean {
  let [seen, hidden] = [0, 0]
  for (const { isHidden, text } of page.blocks) {
    if (text.length < LONG_BLOCK) continue
    if (isHidden) hidden += text.length
    else seen += text.length
  }
  return seen >= LEAST_SEEN && seen >= hidden * LEAST_SEEN_SHARE
}

function isMostlySeen({ page }: PageTraits): boolean {
  let [seen, invisible] = [0, 0]
  for (const { isInvisible, text } of page.blocks) {
    if (isInvisible) invisible += text.length
    else seen += text.length
  }
  return seen >= invisible * MOSTLY_SEEN
}

/** No comments where they may be the content, as in a forum. */
function commentsOf(traits: PageTraits, odds: Float64Array): readonly boolean[] {
  const { blocks } = traits.page
  const isArticle = (traits.saysArticle || traits.hasArticleData) && traits.forumShare < MOST_FORUM_SHARE
  if (!isArticle) return []
  const isComment = blocks.map(({ container }) => {
    return ancestorsOf(container).some(({ groups }) => (groups & COMMENTS) !== 0)
  })
  const article = blocks.filter((_, index) => isComment[index] !== true && (odds[index] ?? 0) > 0)
  const length = article.reduce((sum, { text }) => sum + text.length, 0)
  return length > LEAST_ARTICLE_LENGTH && isComment[0] !== true ? isComment : []
}

/** Share of the chosen text that the container of the content must hold. */
const ROOT_SHARE = 0.8
/** Elements that count as one paragraph; their parent is the container. */
const PARAGRAPH_TAG = /^(?:p|pre|table|thead|tbody|tfoot|tr|td|th|ul|ol|li|h[1-6]|blockquote|dl|dd|dt)$/
/** Shares of prose and of links in what a wider container adds, with which it is still the content. */
const LEAST_PROSE_SHARE = 0.3
const MOST_LINKED_AROUND = 0.2
const PART_TAG = /^(?:table|pre)$/
const LEAST_CELLS = 4
const MOST_LINKED_SHARE = 0.5
/** Longest cell of a data table, in characters; a longer one belongs to a layout table. */
export const LONGEST_CELL = 200
const FOREIGN_PLACE_BITS = bitsOf(PLACES, ['header', 'footer', 'nav', 'aside', 'form', 'dialog'])
const CONTENT_GROUP_BITS = bitsOf(WORD_GROUPS, ['body'])
const FOREIGN_GROUP_BITS = bitsOf(WORD_GROUPS, FOREIGN_GROUPS)

/**
 * Tables of data and programs that stand within the content belong to it as a whole, however little their short lines
 * look like text: a page must not lose its figures.
 */
export function completeParts(traits: PageTraits, chosen: boolean[]): void {
  const { blocks } = traits.page
  const root = contentRoot(traits, chosen)
  if (root === undefined) return
  for (const [part, indexes] of partsOf(traits.page)) {
    if (indexes.every((index) => chosen[index] === true) || !belongsTo(root, part, traits)) continue
    for (const index of indexes) if (blocks[index]?.isHidden === false) chosen[index] = true
  }
}

/** The smallest container that holds nearly all of the chosen text, or what the page itself calls its content around it. */
export function contentRoot({ page }: PageTraits, chosen: readonly boolean[]): Container | undefined {
  const { blocks, containers } = page
  const lengths = new Map<Container, number>()
  const add = (container: Container, length: number): void => {
    lengths.set(container, (lengths.get(container) ?? 0) + length)
  }
  for (const [index, { container, text }] of blocks.entries()) if (chosen[index] === true) add(container, text.length)
  const total = [...lengths.values()].reduce((sum, length) => sum + length, 0)
  let root: Container | undefined
  // From the inside out, so that each container is complete before the one around it.
  for (const container of containers.toReversed()) {
    const length = lengths.get(container) ?? 0
    if (container.parent !== null && length > 0) add(container.parent, length)
    const isEnough = length > 0 && length >= ROOT_SHARE * total
    if (isEnough && (root === undefined || container.depth > root.depth)) root = container
  }
  while (root?.parent != null && PARAGRAPH_TAG.test(root.element.localName)) root = root.parent
  return root === undefined ? undefined : (ancestorsOf(root).find(isMarkedContent) ?? widened(root))
}

/** Chapters of a text may be very uneven: the widest container around the root that adds prose, and few links, is the root. */
function widened(root: Container): Container {
  let widest = root
  for (const wider of ancestorsOf(root)) {
    if ((wider.groups & FOREIGN_GROUP_BITS) !== 0) break
    const added = wider.textLength - root.textLength
    const linked = wider.linkedLength - root.linkedLength
    const isProse = wider.proseLength - root.proseLength >= added * LEAST_PROSE_SHARE
    const isNamed = (wider.groups & CONTENT_GROUP_BITS) !== 0 && linked <= added * MOST_LINKED_SHARE
    if (isNamed || (isProse && linked <= added * MOST_LINKED_AROUND)) widest = wider
  }
  return widest
}

const isMarkedContent = ({ element }: Container): boolean =>
  /^(?:main|article)$/.test(element.localName) || /^(?:main|article)$/.test(element.attribute('role'))

/** The outermost table, or the program, that each block lies in. */
function partsOf({ blocks, containers }: PageBlocks): Map<Container, number[]> {
  const partAround = new Map<Container, Container>()
  for (const container of containers) {
    const outer = container.parent === null ? undefined : partAround.get(container.parent)
    const part = outer ?? (PART_TAG.test(container.element.localName) ? container : undefined)
    if (part !== undefined) partAround.set(container, part)
  }
  const parts = new Map<Container, number[]>()
  for (const [index, { container }] of blocks.entries()) {
    const part = partAround.get(container)
    if (part === undefined) continue
    const indexes = parts.get(part)
    if (indexes === undefined) parts.set(part, [index])
    else indexes.push(index)
  }
  return parts
}

function belongsTo(root: Container, part: Container, { containers }: PageTraits): boolean {
  const isTable = part.element.localName === 'table'
  if (isTable && (part.blocks < LEAST_CELLS || part.textLength > part.blocks * LONGEST_CELL)) return false
  if (part.isHidden || part.linkedLength > part.textLength * MOST_LINKED_SHARE) return false
  const foreign = (containers.get(part)?.places ?? 0) & ~(containers.get(root)?.places ?? 0) & FOREIGN_PLACE_BITS
  if (foreign !== 0) return false
  for (const around of ancestorsOf(part)) {
    if (around === root) return true
    if ((around.groups & FOREIGN_GROUP_BITS) !== 0) return false
  }
  return false
}
