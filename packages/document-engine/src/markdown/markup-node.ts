/** Inline style of a hidden element. */
export const UNSEEN_STYLE = /display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden/i

/** The part of a DOM node that the engine reads; documents, elements and fragments of linkedom conform to it. */
export interface MarkupNode {
  readonly nodeType: number
  readonly localName?: string | null
  readonly data?: string
  readonly parentNode: MarkupNode | null
  readonly firstChild: MarkupNode | null
  readonly nextSibling: MarkupNode | null
  getAttributeNode?(name: string): { readonly value: string } | null
}

const ELEMENT = 1
const TEXT = 3
const CDATA = 4

/** Tag name in lower case; '' for a node that is no element. */
export function tagOf(node: MarkupNode): string {
  return node.nodeType === ELEMENT ? (node.localName ?? '').toLowerCase() : ''
}

/** The characters of a text node; undefined for other nodes. */
export function textOf(node: MarkupNode): string | undefined {
  return node.nodeType === TEXT || node.nodeType === CDATA ? (node.data ?? '') : undefined
}

/** The trimmed value of an attribute; '' without one. */
export function attributeOf(node: MarkupNode, name: string): string {
  return attributeNodeOf(node, name)?.value.trim() ?? ''
}

export function hasAttribute(node: MarkupNode, name: string): boolean {
  return attributeNodeOf(node, name) !== null
}

// Not `getAttribute`: for `class` linkedom builds a token list first.
function attributeNodeOf(node: MarkupNode, name: string): { readonly value: string } | null {
  return node.nodeType === ELEMENT ? (node.getAttributeNode?.(name) ?? null) : null
}

export function classesOf(node: MarkupNode): readonly string[] {
  const classes = attributeOf(node, 'class')
  return classes === '' ? [] : classes.split(/\s+/)
}

interface Linked<Node> {
  readonly firstChild: Node | null
  readonly nextSibling: Node | null
}

export function* childrenOf<Node extends Linked<Node>>(parent: { readonly firstChild: Node | null }): Generator<Node> {
  for (let child = parent.firstChild; child; child = child.nextSibling) yield child
}

/** All nodes below a node in document order, without recursion: hostile documents are deep. */
export function* descendantsOf<Node extends Linked<Node>>(root: { readonly firstChild: Node | null }): Generator<Node> {
  const open: Node[] = []
  let node = root.firstChild
  while (node) {
    yield node
    if (node.nextSibling) open.push(node.nextSibling)
    node = node.firstChild ?? open.pop() ?? null
  }
}

const BEGINNING_NODES = 64

/** The characters of the first few text nodes below a node: enough to recognise a label, at a bounded cost. */
export function beginningOf(root: MarkupNode): string {
  let text = ''
  let nodes = 0
  for (const node of descendantsOf(root)) {
    text += (textOf(node) ?? '').slice(0, BEGINNING_NODES)
    nodes += 1
    if (nodes > BEGINNING_NODES) return `${text}…`
  }
  return text
}

/** The characters of all text nodes below a node. */
export function wholeText(root: MarkupNode): string {
  const parts: string[] = []
  for (const node of descendantsOf(root)) {
    const text = textOf(node)
    if (text !== undefined) parts.push(text)
  }
  return parts.join('')
}
