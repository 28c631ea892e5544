import { FOREIGN_GROUPS, WORD_GROUPS } from './class-words.js'
import { PLACES } from './container-traits.js'
import { bitsOf } from './name-bits.js'
import type { Container, PageBlocks } from './page-blocks.js'
import { ancestorsOf, type PageTraits } from './page-traits.js'

/** Of the chosen text; what lies in the smallest container that holds so much stands within the content. */
const ROOT_SHARE = 0.8
/** Elements that are one paragraph: whatever they hold, the element around them is meant. */
const PARAGRAPH_TAG = /^(?:p|pre|td|th|li|h[1-6]|blockquote|dd|dt)$/
const PART_TAG = /^(?:table|pre)$/
const LEAST_CELLS = 4
const MOST_LINKED_SHARE = 0.5
/** A cell that is longer is a part of a page that a table lays out. */
export const LONGEST_CELL = 200
const FOREIGN_PLACE_BITS = bitsOf(PLACES, ['header', 'footer', 'nav', 'aside', 'form', 'dialog'])
const FOREIGN_GROUP_BITS = bitsOf(WORD_GROUPS, FOREIGN_GROUPS)

/**
 * Tables of data and programs that stand within the content belong to it as a whole, however little their short lines
 * look like text: a page must not lose its figures.
 */
export function completeParts(traits: PageTraits, chosen: boolean[]): void {
  const { blocks } = traits.page
  const root = contentRoot(traits.page, chosen)
  if (root === undefined) return
  for (const [part, indexes] of partsOf(traits.page)) {
    if (indexes.every((index) => chosen[index] === true) || !belongsTo(root, part, traits)) continue
    for (const index of indexes) if (blocks[index]?.isHidden === false) chosen[index] = true
  }
}

/** The smallest container that holds nearly all of the chosen text, or what the page itself calls its content around it. */
function contentRoot({ blocks, containers }: PageBlocks, chosen: readonly boolean[]): Container | undefined {
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
  return root === undefined ? undefined : (ancestorsOf(root).find(isMarkedContent) ?? root)
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
