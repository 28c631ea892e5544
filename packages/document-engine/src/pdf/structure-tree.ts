import type { StructureNode } from './layout/layout-model.js'

/** Deeper elements of a page are read as parts of the one at this depth. */
const MAX_DEPTH = 60
/** Most elements and pieces of content of a page; a tree with more is not used. */
const MAX_NODES = 50_000
const MAX_ALT_LENGTH = 2000

interface RawNode {
  readonly role?: unknown
  readonly alt?: unknown
  readonly children?: unknown
  readonly type?: unknown
  readonly id?: unknown
}

/** The structure tree that pdf.js gives for a page; undefined where it holds no content, or is too large. */
export function structureOf(tree: unknown): StructureNode | undefined {
  const reader = new TreeReader()
  const node = isNode(tree) ? reader.node(tree, 0) : undefined
  return reader.contents > 0 && reader.nodes <= MAX_NODES ? node : undefined
}

class TreeReader {
  nodes = 0
  contents = 0

  node(raw: RawNode, depth: number): StructureNode {
    this.nodes += 1
    const alt = typeof raw.alt === 'string' ? raw.alt.slice(0, MAX_ALT_LENGTH) : ''
    const children: (StructureNode | string)[] = []
    this.addChildren(children, raw, depth)
    return { role: typeof raw.role === 'string' ? raw.role : '', alt, children }
  }

  private addChildren(children: (StructureNode | string)[], raw: RawNode, depth: number): void {
    if (!Array.isArray(raw.children)) return
    for (const child of raw.children) {
      if (!isNode(child) || this.nodes > MAX_NODES) continue
      if (child.type === 'content' && typeof child.id === 'string') {
        this.nodes += 1
        this.contents += 1
        children.push(child.id)
      } else if (child.type === undefined && depth < MAX_DEPTH) children.push(this.node(child, depth + 1))
    }
  }
}

const isNode = (value: unknown): value is RawNode => typeof value === 'object' && value !== null
