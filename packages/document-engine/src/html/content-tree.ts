import { isWhole } from './block-reader.js'
import { HtmlElement, type HtmlNode, HtmlText } from './html-node.js'
import type { LooseMedia, PageBlocks } from './page-blocks.js'
import { BLOCK_TAGS } from './tag-rules.js'

const CELL_TAGS: ReadonlySet<string> = new Set(['td', 'th'])
/** A loose picture belongs to the text when a chosen block stands so few containers further out. */
const NEAR_LEVELS = 2

/** A tree of the chosen blocks and the pictures among them, with the elements that hold them; the page stays as it is. */
export function contentTree(page: PageBlocks, chosen: readonly boolean[]): HtmlElement {
  const kept = new Set<HtmlNode>()
  for (const [index, { nodes, media }] of page.blocks.entries()) {
    if (chosen[index] === true) for (const node of [...nodes, ...media]) kept.add(node)
  }
  for (const media of page.media) if (isAmongChosen(media, page, chosen)) kept.add(media.element)
  return copyOf(page.body.element, kept) ?? new HtmlElement('body', new Map())
}

function isAmongChosen({ before, container }: LooseMedia, page: PageBlocks, chosen: readonly boolean[]): boolean {
  const sides = [before - 1, before].filter((index) => chosen[index] === true)
  if (sides.length === 2) return true
  return sides.some((index) => {
    let outer = page.blocks[index]?.container ?? null
    for (let level = 0; level <= NEAR_LEVELS && outer !== null; level += 1) {
      if (outer === container || outer === container.parent) return true
      outer = outer.parent
    }
    return false
  })
}

/** Undefined when nothing of it is kept. */
function copyOf(element: HtmlElement, kept: ReadonlySet<HtmlNode>): HtmlElement | undefined {
  if (kept.has(element)) return wholeCopyOf(element)
  const copies: HtmlNode[] = []
  let holdsBlocks = false
  for (let child = element.firstChild; child !== null; child = child.nextSibling) {
    const copy = child instanceof HtmlText ? textCopyOf(child, kept) : elementCopyOf(child, kept)
    if (copy === undefined) continue
    copies.push(copy)
    if (copy instanceof HtmlElement) holdsBlocks ||= copy.holdsBlocks || BLOCK_TAGS.has(copy.localName)
  }
  if (!copies.some(isSubstantial)) return undefined
  const copy = new HtmlElement(element.localName, element.attributes)
  copy.holdsBlocks = holdsBlocks
  for (const child of copies) copy.append(child)
  return copy
}

function elementCopyOf(element: HtmlElement, kept: ReadonlySet<HtmlNode>): HtmlElement | undefined {
  const copy = copyOf(element, kept)
  if (copy !== undefined) return isWhole(element) ? wholeCopyOf(element) : copy
  // A cell without content still moves those after it.
  return element.localName === 'br' || CELL_TAGS.has(element.localName)
    ? new HtmlElement(element.localName, element.attributes)
    : undefined
}

function textCopyOf(text: HtmlText, kept: ReadonlySet<HtmlNode>): HtmlText | undefined {
  return kept.has(text) ? new HtmlText(text.data) : undefined
}

function isSubstantial(node: HtmlNode): boolean {
  if (node instanceof HtmlText) return true
  return node.localName !== 'br' && (node.firstChild !== null || !CELL_TAGS.has(node.localName))
}

function wholeCopyOf(element: HtmlElement): HtmlElement {
  const copy = new HtmlElement(element.localName, element.attributes)
  copy.holdsBlocks = element.holdsBlocks
  for (let child = element.firstChild; child !== null; child = child.nextSibling) {
    copy.append(child instanceof HtmlText ? new HtmlText(child.data) : wholeCopyOf(child))
  }
  return copy
}
