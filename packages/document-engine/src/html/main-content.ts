import { chooseContent } from './content-choice.js'
import { BLOCK_TAGS, HtmlElement, type HtmlNode, HtmlText, textBelow } from './html-node.js'
import { type HtmlTree, readTree } from './html-parser.js'
import { pageTraits } from './page-traits.js'
import { isWhole, type LooseMedia, type PageBlocks, textBlocks } from './text-blocks.js'

const CELL_TAGS: ReadonlySet<string> = new Set(['td', 'th'])
/** Most levels between a loose picture and the container of a chosen block for the picture to belong to it. */
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

/** Undefined when no part of it is kept. */
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
  // An empty cell keeps the columns of the cells after it.
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

/** Most levels of JSON-LD that are searched; it is flat in practice. */
const DEEPEST_LEVEL = 12
const MOST_VALUES = 20_000
const LONGEST_SCRIPT = 4_000_000
const BODY_NAMES: ReadonlySet<string> = new Set(['articleBody', 'text', 'description'])

/**
 * The longest text in the JSON-LD of a page, where some pages keep what a script would show; '' when there is none.
 * Paragraphs are parted by line feeds or tags, as the author had them.
 */
export function structuredText(scripts: readonly string[]): string {
  let longest = ''
  for (const script of scripts) {
    if (script.length > LONGEST_SCRIPT) continue
    for (const text of textsIn(parsed(script))) if (text.length > longest.length) longest = text
  }
  return longest
}

function parsed(script: string): unknown {
  try {
    return JSON.parse(script)
  } catch {
    return undefined
  }
}

function textsIn(root: unknown): string[] {
  const texts: string[] = []
  const waiting = [{ value: root, level: 0 }]
  for (let visited = 0; visited < MOST_VALUES; visited += 1) {
    const next = waiting.pop()
    if (next === undefined) break
    if (typeof next.value !== 'object' || next.value === null || next.level >= DEEPEST_LEVEL) continue
    for (const [name, value] of Object.entries(next.value)) {
      if (typeof value === 'string' && BODY_NAMES.has(name)) texts.push(value)
      else waiting.push({ value, level: next.level + 1 })
    }
  }
  return texts
}

/** JSON-LD replaces the content of a page that is so many times shorter … */
const LEAST_SHARE = 0.3
/** … if it has at least so many characters. */
const SHORTEST_DATA = 200
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()

interface MainContent {
  /** Holds the heading above the content; empty when there is none. */
  readonly title: HtmlElement
  /** Empty when the page holds no text. */
  readonly body: HtmlElement
}

/** The main content of a page and its title, as new trees. */
export function mainContent(tree: HtmlTree): MainContent {
  const page = textBlocks(tree.body)
  const data = structuredText(tree.jsonLd)
  if (page.blocks.length === 0) {
    // Only JSON-LD, or text for browsers without scripts, is left.
    return { title: emptyBody(), body: data === '' ? paragraphsOf(textBelow(tree.body)) : contentOfData(data) }
  }
  const { chosen, title } = chooseContent(pageTraits(tree, page))
  const body = contentTree(page, chosen)
  const isBodyElsewhere = data.length >= SHORTEST_DATA && textBelow(body).length < data.length * LEAST_SHARE
  return {
    title:
      title === undefined
        ? emptyBody()
        : contentTree(
            { ...page, media: [] },
            chosen.map((_, at) => at === title),
          ),
    body: isBodyElsewhere ? contentOfData(data) : body,
  }
}

/** JSON-LD has HTML as often as plain text. */
function contentOfData(data: string): HtmlElement {
  return /<\/?[a-z]/i.test(data) ? readTree(data).body : paragraphsOf(data)
}

function paragraphsOf(text: string): HtmlElement {
  const body = emptyBody()
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const paragraph = new HtmlElement('p', NO_ATTRIBUTES)
    paragraph.append(new HtmlText(line.trim()))
    body.append(paragraph)
    body.holdsBlocks = true
  }
  return body
}

function emptyBody(): HtmlElement {
  return new HtmlElement('body', NO_ATTRIBUTES)
}
