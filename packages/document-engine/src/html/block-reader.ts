import { wordGroups } from './class-words.js'
import { collapseBlanks, descendantsOf, HtmlElement, type HtmlNode, HtmlText } from './html-node.js'
import { UNSEEN_STYLE } from '../markdown/unseen-style.js'
import { BLOCK_TAGS } from './tag-rules.js'
import type { Container, LooseMedia, PageBlocks, TextBlock } from './page-blocks.js'

const CONTROL_TAGS: ReadonlySet<string> = new Set(['input', 'button'])
const MEDIA_TAGS: ReadonlySet<string> = new Set(['img', 'hr', 'iframe', 'embed', 'video', 'audio', 'input'])
/** Read by whoever shows them, as a whole. */
const WHOLE_TAGS: ReadonlySet<string> = new Set(['math', 'pre', 'picture'])
const UNSEEN_TAGS: ReadonlySet<string> = new Set(['source', 'track', 'param', 'wbr', 'col'])

/** What surrounds a piece of text inside its line. */
interface Surroundings {
  readonly isLinked: boolean
  readonly isStrong: boolean
  readonly isHidden: boolean
  readonly isInvisible: boolean
}

interface Line {
  readonly container: Container
  readonly nodes: HtmlText[]
  readonly media: HtmlElement[]
  readonly parts: string[]
  linkedLength: number
  strongLength: number
  links: number
  isHidden: boolean
  isInvisible: boolean
}

export class BlockReader {
  private readonly blocks: TextBlock[] = []
  private readonly media: LooseMedia[] = []
  private readonly containers: Container[] = []
  /** Pages repeat their classes. */
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
    if (tag === 'noscript') this.readNoscript(element, container)
    else if (MEDIA_TAGS.has(tag)) this.readMedia(element, container)
    else if (tag === 'br') this.readBreak(element)
    else if (BLOCK_TAGS.has(tag) || element.holdsBlocks) {
      container.parts += 1
      const inner = this.containerOf(element, container)
      this.readContainer(inner, { ...around, isLinked: around.isLinked || tag === 'a' })
      container.images += inner.images
      container.controls += inner.controls
    } else this.readInline(element, container, around)
  }

  private readInline(element: HtmlElement, container: Container, around: Surroundings): void {
    const tag = element.localName
    const isLink = tag === 'a'
    this.readChildren(element, container, {
      isLinked: around.isLinked || isLink,
      isStrong: around.isStrong || tag === 'strong' || tag === 'b',
      isHidden: around.isHidden || isUnseen(element),
      isInvisible: around.isInvisible || isInvisible(element),
    })
    if (isLink && this.line !== undefined) this.line.links += 1
  }

  private readText(node: HtmlText, container: Container, around: Surroundings): void {
    const { data } = node
    if (this.line === undefined && data.trim() === '') return
    this.line ??= {
      container,
      nodes: [],
      media: [],
      parts: [],
      linkedLength: 0,
      strongLength: 0,
      links: 0,
      isHidden: false,
      isInvisible: false,
    }
    this.line.nodes.push(node)
    this.line.parts.push(data)
    const length = collapseBlanks(data).length
    if (around.isLinked) this.line.linkedLength += length
    if (around.isStrong) this.line.strongLength += length
    if (length === 0) return
    this.line.isHidden ||= around.isHidden
    this.line.isInvisible ||= around.isInvisible
  }

  /** Holds the picture that a script would put in the place of the one before. */
  private readNoscript(element: HtmlElement, container: Container): void {
    const nodes = [...descendantsOf(element)]
    const image = nodes.find((node) => node instanceof HtmlElement && node.localName === 'img')
    if (!(image instanceof HtmlElement) || nodes.some((node) => node instanceof HtmlText && node.data.trim() !== ''))
      return
    const isShown = this.lastImage?.parentNode === element.parentNode && hasSource(this.lastImage)
    if (!isShown) this.readMedia(image, container)
  }

  private readMedia(element: HtmlElement, container: Container): void {
    if (element.localName === 'img') {
      container.images += 1
      this.lastImage = element
    }
    if (this.line !== undefined && element.localName !== 'hr') this.line.media.push(element)
    else this.media.push({ element, container, before: this.blocks.length })
  }

  /** One break goes on with the paragraph, two end it. */
  private readBreak(element: HtmlElement): void {
    if (this.line === undefined) return
    if (isFollowedByBreak(element)) this.endLine()
    else this.line.parts.push('\n')
  }

  private endLine(): void {
    const line = this.line
    this.line = undefined
    if (line === undefined) return
    const { container, nodes, media, strongLength, links } = line
    const text = collapseBlanks(line.parts.join(''))
    const linkedLength = Math.min(line.linkedLength, text.length)
    if (text === '') return
    const isHidden = line.isHidden || container.isHidden
    const isInvisible = line.isInvisible || container.isInvisible
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

export function isWhole(element: HtmlElement): boolean {
  return WHOLE_TAGS.has(element.localName)
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
