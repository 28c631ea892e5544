import { chooseContent } from './content-choice.js'
import { BLOCK_TAGS, HtmlElement, type HtmlNode, HtmlText, textBelow } from './html-node.js'
import { type HtmlTree, readTree } from './html-parser.js'
import { stateText, structuredText } from './page-data.js'
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

/** JSON-LD replaces the content of a page that is so many times shorter … */
const LEAST_SHARE = 0.3
/** … if it has at least so many characters. */
const SHORTEST_DATA = 200
/** So much text at most has a page that waits for its script. */
const LONGEST_SHELL = 500
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()
/** What pages show until their script has run, or if it cannot. */
const SHELL_TEXT =
  /\b(?:enable|activate|turn on|switch on|allow|requires?|without|needs?)\b.{0,60}\b(?:java ?)?scripts?\b|\bjava ?script\b.{0,60}\b(?:disabled|enabled?|required|off|on)\b|^\W{0,5}(?:loading|please wait)\b.{0,40}$/i

interface MainContent {
  /** Holds the heading above the content; empty when there is none. */
  readonly title: HtmlElement
  /** Empty when the page holds no text. */
  readonly body: HtmlElement
  /** Whether only a script would show the content. */
  readonly needsScripts: boolean
}

/** What the head of a page says about it; '' without. */
interface Summary {
  readonly title: string
  readonly description: string
}

/** The main content of a page and its title, as new trees. */
export function mainContent(tree: HtmlTree, summary: Summary): MainContent {
  const page = textBlocks(tree.body)
  const shown = shownContent(tree, page)
  const length = textBelow(shown.body).length
  const data = structuredText(tree.jsonLd)
  if (data.length >= SHORTEST_DATA ? length < data.length * LEAST_SHARE : length === 0 && data !== '') {
    return { ...shown, body: contentOfData(data), needsScripts: false }
  }
  const pageLength = page.body.textLength
  const state = pageLength < LONGEST_SHELL ? stateText(tree.state) : ''
  if (state.length >= SHORTEST_DATA && pageLength < state.length * LEAST_SHARE) {
    return { ...shown, body: contentOfData(state), needsScripts: false }
  }
  return isShell(tree, page, length) ? summaryOf(summary, shown) : { ...shown, needsScripts: false }
}

function shownContent(tree: HtmlTree, page: PageBlocks): Pick<MainContent, 'title' | 'body'> {
  // Only text for browsers without scripts is left.
  if (page.blocks.length === 0) {
    return { title: emptyBody(), body: textBelow(tree.body) === '' ? emptyBody() : withNoscript(tree.body) }
  }
  const { chosen, title } = chooseContent(pageTraits(tree, page))
  const body = contentTree(page, chosen)
  if (title === undefined) return { title: emptyBody(), body }
  const isTitle = chosen.map((_, at) => at === title)
  return { title: contentTree({ ...page, media: [] }, isTitle), body }
}

/** A copy in which text for browsers without scripts is text like any other. */
function withNoscript(element: HtmlElement): HtmlElement {
  const copy = new HtmlElement(element.localName === 'noscript' ? 'div' : element.localName, element.attributes)
  copy.holdsBlocks = element.holdsBlocks
  for (let child = element.firstChild; child !== null; child = child.nextSibling) {
    copy.append(child instanceof HtmlText ? new HtmlText(child.data) : withNoscript(child))
  }
  return copy
}

function isShell(tree: HtmlTree, page: PageBlocks, length: number): boolean {
  if (length === 0) return true
  if (length >= LONGEST_SHELL) return false
  if (page.blocks.length === 0) return SHELL_TEXT.test(textBelow(tree.body))
  return tree.hasScripts && page.body.textLength < LONGEST_SHELL && page.blocks.every(({ text }) => isShellText(text))
}

const isShellText = (text: string): boolean => SHELL_TEXT.test(text)

/** The title and the description of a page that shows nothing else; without these, what it shows. */
function summaryOf({ title, description }: Summary, shown: Pick<MainContent, 'title' | 'body'>): MainContent {
  if (title === '' && description === '') return { ...shown, needsScripts: true }
  const heading = new HtmlElement('h1', NO_ATTRIBUTES)
  heading.append(new HtmlText(title))
  const head = emptyBody()
  if (title !== '') head.append(heading)
  return { title: head, body: paragraphsOf(description), needsScripts: true }
}

/** Data has HTML as often as plain text. */
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
