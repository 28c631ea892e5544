import { descendantsOf, UNSEEN_STYLE } from '../markdown/markup-node.js'
import { wordGroups } from './class-words.js'
import { BLOCK_TAGS, collapseBlanks, HtmlElement, type HtmlNode, HtmlText } from './html-node.js'
import { isEditLink } from './page-controls.js'

/** A block element and the sums over its content. */
export interface Container {
  readonly element: HtmlElement
  readonly parent: Container | null
  /** Depth, 0 for the body. */
  readonly depth: number
  /** Classes and id, as bits of `WORD_GROUPS`. */
  readonly groups: number
  /** Hidden by an attribute, from the eye or from screen readers. */
  readonly isHidden: boolean
  /** Hidden from the eye by an attribute. */
  readonly isInvisible: boolean
  /** Containers and loose blocks directly in it. */
  parts: number
  controls: number
  images: number
  /** Length of the blocks below, in characters. */
  textLength: number
  linkedLength: number
  /** Length of the blocks below that are prose. */
  proseLength: number
  blocks: number
}

/** A line or a paragraph: text between two places where a new line starts. */
export interface TextBlock {
  readonly container: Container
  readonly nodes: readonly HtmlText[]
  /** Pictures, frames and checkboxes in the text. */
  readonly media: readonly HtmlElement[]
  /** Blanks collapsed. */
  readonly text: string
  /** Length of the linked part of the text, in characters. */
  readonly linkedLength: number
  readonly strongLength: number
  readonly links: number
  /** Whether all of its text is hidden, like a container; hidden pieces within other text do not belong to it. */
  readonly isHidden: boolean
  readonly isInvisible: boolean
}

/** A picture or a rule that stands on its own. */
export interface LooseMedia {
  readonly element: HtmlElement
  readonly container: Container
  /** Index of the block that follows. */
  readonly before: number
}

export interface PageBlocks {
  readonly body: Container
  /** Outer ones before those in them; the body first. */
  readonly containers: readonly Container[]
  readonly blocks: readonly TextBlock[]
  readonly media: readonly LooseMedia[]
}

const CONTROL_TAGS: ReadonlySet<string> = new Set(['input', 'button'])
const MEDIA_TAGS: ReadonlySet<string> = new Set(['img', 'hr', 'iframe', 'embed', 'video', 'audio', 'input'])
/** Elements that are kept or left out as a whole. */
const WHOLE_TAGS: ReadonlySet<string> = new Set(['math', 'pre', 'picture'])
const UNSEEN_TAGS: ReadonlySet<string> = new Set(['source', 'track', 'param', 'wbr', 'col'])

const HEADING_TAG = /^h[1-6]$/

/** State of the inline elements around a piece of text. */
interface Surroundings {
  readonly isLinked: boolean
  readonly isStrong: boolean
  readonly isHidden: boolean
  readonly isInvisible: boolean
}

/** A stretch of a line: what its own elements hide from the eye, or the rest. */
interface Stretch {
  readonly nodes: HtmlText[]
  readonly media: HtmlElement[]
  readonly parts: string[]
  linkedLength: number
  strongLength: number
  links: number
  /** Whether it holds text besides blanks, and text that screen readers are not told to skip. */
  hasText: boolean
  hasReadableText: boolean
}

interface Line {
  readonly container: Container
  readonly seen: Stretch
  readonly invisible: Stretch
}

const newStretch = (): Stretch => ({
  nodes: [],
  media: [],
  parts: [],
  linkedLength: 0,
  strongLength: 0,
  links: 0,
  hasText: false,
  hasReadableText: false,
})

class BlockReader {
  private readonly blocks: TextBlock[] = []
  private readonly media: LooseMedia[] = []
  private readonly containers: Container[] = []
  /** Cache: pages repeat their classes. */
  private readonly groupsByNames = new Map<string, number>()
  private line: Line | undefined
  private lastImage: HtmlElement | undefined

  constructor(private readonly body: HtmlElement) {}

  read(): PageBlocks {
    const container = this.containerOf(this.body, null)
    this.readContainer(container, { isLinked: false, isStrong: false, isHidden: false, isInvisible: false })
    return { body: container, containers: this.containers, blocks: this.blocks, media: this.media }
  }

  private readContainer(container: Container, around: Surroundings): void {
    this.endLine()
    this.readChildren(container.element, container, around)
    this.endLine()
  }

  private readChildren(element: HtmlElement, container: Container, around: Surroundings): void {
    for (let node = element.firstChild; node !== null; node = node.nextSibling) {
      if (node instanceof HtmlText) this.readText(node, container, around)
      else this.readElement(node, container, around)
    }
  }

  private readElement(element: HtmlElement, container: Container, around: Surroundings): void {
    const tag = element.localName
    if (UNSEEN_TAGS.has(tag)) return
    if (CONTROL_TAGS.has(tag)) container.controls += 1
    if (tag === 'noscript') this.readNoscript(element, container, around)
    else if (MEDIA_TAGS.has(tag)) this.readMedia(element, container, around)
    else if (tag === 'br') this.readBreak(element)
    else if (BLOCK_TAGS.has(tag) || element.holdsBlocks) {
      container.parts += 1
      const inner = this.containerOf(element, container)
      this.readContainer(inner, { ...around, isLinked: around.isLinked || isLinkTag(element) })
      container.images += inner.images
      container.controls += inner.controls
    } else this.readInline(element, container, around)
  }

  private readInline(element: HtmlElement, container: Container, around: Surroundings): void {
    const tag = element.localName
    if (HEADING_TAG.test(container.element.localName) && isEditLink(element)) return
    const isLink = isLinkTag(element)
    const inner = {
      isLinked: around.isLinked || isLink,
      isStrong: around.isStrong || tag === 'strong' || tag === 'b',
      isHidden: around.isHidden || isUnseen(element),
      // The picture of a formula stands beside its hidden MathML: the writer takes one of them.
      isInvisible: tag !== 'math' && (around.isInvisible || (isInvisible(element) && !isPanel(element))),
    }
    this.readChildren(element, container, inner)
    if (isLink && this.line !== undefined) stretchOf(this.line, inner).links += 1
  }

  private readText(node: HtmlText, container: Container, around: Surroundings): void {
    const { data } = node
    if (this.line === undefined && data.trim() === '') return
    this.line ??= { container, seen: newStretch(), invisible: newStretch() }
    const stretch = stretchOf(this.line, around)
    // Blanks part the pieces of either stretch.
    const stretches = data.trim() === '' ? [this.line.seen, this.line.invisible] : [stretch]
    for (const { nodes, parts } of stretches) {
      nodes.push(node)
      parts.push(data)
    }
    const length = collapseBlanks(data).length
    if (around.isLinked) stretch.linkedLength += length
    if (around.isStrong) stretch.strongLength += length
    if (data.trim() === '') return
    stretch.hasText = true
    stretch.hasReadableText ||= !around.isHidden
  }

  /** Reads the picture of a `noscript`, unless the same picture stands before it with an address of its own. */
  private readNoscript(element: HtmlElement, container: Container, around: Surroundings): void {
    const nodes = [...descendantsOf(element)]
    const image = nodes.find((node) => node instanceof HtmlElement && node.localName === 'img')
    if (!(image instanceof HtmlElement) || nodes.some((node) => node instanceof HtmlText && node.data.trim() !== ''))
      return
    const isShown = this.lastImage?.parentNode === element.parentNode && hasSource(this.lastImage)
    if (!isShown) this.readMedia(image, container, around)
  }

  private readMedia(element: HtmlElement, container: Container, around: Surroundings): void {
    if (element.localName === 'img') {
      container.images += 1
      this.lastImage = element
    }
    if (this.line !== undefined && element.localName !== 'hr') stretchOf(this.line, around).media.push(element)
    else this.media.push({ element, container, before: this.blocks.length })
  }

  /** One `br` continues the paragraph, two end it. */
  private readBreak(element: HtmlElement): void {
    if (this.line === undefined) return
    if (isFollowedByBreak(element)) this.endLine()
    else this.line.seen.parts.push('\n')
  }

  /** Of a line that is hidden in part, the rest is read. */
  private endLine(): void {
    const line = this.line
    this.line = undefined
    if (line === undefined) return
    const { container } = line
    const isSeen = line.seen.hasText
    const { nodes, media, strongLength, links, hasReadableText, ...stretch } = isSeen ? line.seen : line.invisible
    const text = collapseBlanks(stretch.parts.join(''))
    const linkedLength = Math.min(stretch.linkedLength, text.length)
    // Beside hidden text only, a picture stands on its own.
    if (!isSeen)
      for (const element of line.seen.media) this.media.push({ element, container, before: this.blocks.length })
    if (text === '') return
    const isHidden = !hasReadableText || container.isHidden
    const isInvisible = !isSeen || container.isInvisible
    this.blocks.push({ container, nodes, media, text, linkedLength, strongLength, links, isHidden, isInvisible })
  }

  private containerOf(element: HtmlElement, parent: Container | null): Container {
    const container = {
      element,
      parent,
      depth: (parent?.depth ?? -1) + 1,
      groups: this.groupsOf(element),
      isHidden: (parent?.isHidden ?? false) || isUnseen(element),
      isInvisible: (parent?.isInvisible ?? false) || isInvisible(element),
      parts: 0,
      controls: 0,
      images: 0,
      textLength: 0,
      linkedLength: 0,
      proseLength: 0,
      blocks: 0,
    }
    this.containers.push(container)
    return container
  }

  private groupsOf(element: HtmlElement): number {
    const names = `${element.attribute('class')} ${element.attribute('id')}`
    const known = this.groupsByNames.get(names)
    if (known !== undefined) return known
    const groups = wordGroups(names)
    this.groupsByNames.set(names, groups)
    return groups
  }
}

/** An anchor without `href` is the target of links. */
function isLinkTag(element: HtmlElement): boolean {
  return element.localName === 'a' && element.attributes.has('href')
}

export function isWhole(element: HtmlElement): boolean {
  return WHOLE_TAGS.has(element.localName)
}

function stretchOf(line: Line, around: Surroundings): Stretch {
  return around.isInvisible ? line.invisible : line.seen
}

/** Parts that are hidden until a click. */
const PANEL = /tab|panel|accord|collaps|toggle|expand|read-?more|show-?more|spoiler|faq|answer/i

export function isPanel(element: HtmlElement): boolean {
  return PANEL.test(`${element.attribute('class')} ${element.attribute('id')} ${element.attribute('role')}`)
}

function isUnseen(element: HtmlElement): boolean {
  return element.attribute('aria-hidden') === 'true' || isInvisible(element)
}

function isInvisible(element: HtmlElement): boolean {
  if (element.attributes.size === 0) return false
  return element.attributes.has('hidden') || UNSEEN_STYLE.test(element.attribute('style'))
}

function hasSource(image: HtmlElement | undefined): boolean {
  const sources = ['src', 'data-src', 'data-lazy-src', 'data-original', 'srcset', 'data-srcset']
  return sources.some((name) => !/^(?:data:|$)/.test(image?.attribute(name) ?? ''))
}

function isFollowedByBreak(element: HtmlElement): boolean {
  let next: HtmlNode | null = element.nextSibling
  while (next instanceof HtmlText && next.data.trim() === '') next = next.nextSibling
  return next instanceof HtmlElement && next.localName === 'br'
}

const PROSE_LENGTH = 100
const PROSE_LINKED_SHARE = 0.4

export function isProse(block: TextBlock): boolean {
  return block.text.length > PROSE_LENGTH && block.linkedLength < block.text.length * PROSE_LINKED_SHARE
}

/** Splits a page into blocks, in document order, and sums them up for each container. */
export function textBlocks(body: HtmlElement): PageBlocks {
  const page = new BlockReader(body).read()
  for (const block of page.blocks) {
    const prose = isProse(block) ? block.text.length : 0
    for (let container: Container | null = block.container; container !== null; container = container.parent) {
      container.textLength += block.text.length
      container.linkedLength += block.linkedLength
      container.proseLength += prose
      container.blocks += 1
    }
  }
  return page
}
