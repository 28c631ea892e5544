import type { MarkupNode } from '../markdown/markup-node.js'

export type HtmlNode = HtmlElement | HtmlText

export class HtmlText implements MarkupNode {
  readonly nodeType = 3
  readonly firstChild = null
  parentNode: HtmlElement | null = null
  nextSibling: HtmlNode | null = null

  constructor(readonly data: string) {}
}

/** An element of a page, as small as reading it allows. */
export class HtmlElement implements MarkupNode {
  readonly nodeType = 1
  parentNode: HtmlElement | null = null
  nextSibling: HtmlNode | null = null
  firstChild: HtmlNode | null = null
  lastChild: HtmlNode | null = null
  /** Set by whoever builds the tree: an element that starts a line of its own lies below this one. */
  holdsBlocks = false

  constructor(
    /** Lower case. */
    readonly localName: string,
    readonly attributes: ReadonlyMap<string, string>,
  ) {}

  /** Takes a node that stands nowhere yet. */
  append(node: HtmlNode): void {
    node.parentNode = this
    if (this.lastChild === null) this.firstChild = node
    else this.lastChild.nextSibling = node
    this.lastChild = node
  }

  /** '' when it is not there. */
  attribute(name: string): string {
    return this.attributes.get(name) ?? ''
  }

  getAttributeNode(name: string): { readonly value: string } | null {
    const value = this.attributes.get(name)
    return value === undefined ? null : { value }
  }
}

export function* childrenOf(element: HtmlElement): Generator<HtmlNode> {
  for (let child = element.firstChild; child !== null; child = child.nextSibling) yield child
}

/** All nodes below an element, in document order. */
export function* descendantsOf(root: HtmlElement): Generator<HtmlNode> {
  const waiting: HtmlNode[] = []
  let node = root.firstChild
  while (node !== null) {
    yield node
    if (node.nextSibling !== null) waiting.push(node.nextSibling)
    node = node.firstChild ?? waiting.pop() ?? null
  }
}

/** The characters below an element, blanks collapsed. */
export function textBelow(root: HtmlElement): string {
  const parts: string[] = []
  for (const node of descendantsOf(root)) if (node instanceof HtmlText) parts.push(node.data)
  return collapseBlanks(parts.join(''))
}

export function collapseBlanks(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
