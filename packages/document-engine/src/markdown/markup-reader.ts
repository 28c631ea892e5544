import { collapseBlanks } from './characters.js'
import type { Block, Inline, ListBlock } from './document-model.js'
import type { Content, Reading, Style } from './element-handler.js'
import { ELEMENT_HANDLERS } from './element-handlers.js'
import { childrenOf, type MarkupNode, tagOf, textOf, wholeText } from './markup-node.js'
import { tidyParagraphs } from './tidy-inline.js'

// The tree of a page ends before that; whatever else comes deeper loses markup there, not text.
const DEEPEST = 520
const PLAIN: Style = { marks: 0, isInLink: false, isInHeading: false, isInScript: false, nesting: 0 }

/** Reads a tree of HTML into blocks; relative addresses stand against `baseUrl`. */
export function readMarkup(root: MarkupNode, baseUrl: string): readonly Block[] {
  const reader = new MarkupReader(baseUrl)
  if (tagOf(root) === '') reader.readChildren(root, PLAIN)
  else reader.readNode(root, PLAIN)
  return reader.finish()
}

class MarkupReader implements Reading {
  private blocks: Block[] = []
  private line: Inline[] = []
  /** How often a block began or ended so far. */
  private blockEnds = 0
  private depth = 0

  constructor(readonly baseUrl: string) {}

  finish(): readonly Block[] {
    this.endParagraph()
    return this.blocks
  }

  addText(text: string, style: Style): void {
    if (text !== '') this.line.push({ kind: 'text', text: collapseBlanks(text), marks: style.marks })
  }

  addPiece(piece: Inline): void {
    this.line.push(piece)
  }

  addBlock(block: Block): void {
    this.endParagraph()
    const last = this.blocks.at(-1)
    if (block.kind === 'list' && last?.kind === 'list' && continues(block, last))
      for (const item of block.items) last.items.push(item)
    else this.blocks.push(block)
  }

  endParagraph(): void {
    this.blockEnds += 1
    if (this.line.length === 0) return
    for (const content of tidyParagraphs(this.line)) this.blocks.push({ kind: 'paragraph', content })
    this.line = []
  }

  readNode(node: MarkupNode, style: Style): void {
    const text = textOf(node)
    if (text !== undefined) {
      this.addText(text, style)
      return
    }
    const tag = tagOf(node)
    if (tag === '') return
    if (this.depth >= DEEPEST) {
      this.addText(wholeText(node), style)
      return
    }
    this.depth += 1
    const handler = ELEMENT_HANDLERS.get(tag)
    if (handler) handler(node, this, style)
    else this.readChildren(node, style)
    this.depth -= 1
  }

  readChildren(node: MarkupNode, style: Style): void {
    for (const child of childrenOf(node)) this.readNode(child, style)
  }

  readApart(read: () => void): Content {
    const outer = { blocks: this.blocks, line: this.line, blockEnds: this.blockEnds }
    this.blocks = []
    this.line = []
    read()
    const isInline = this.blockEnds === outer.blockEnds
    if (!isInline) this.endParagraph()
    const content: Content = isInline ? { isInline, pieces: this.line } : { isInline, blocks: this.blocks }
    this.blocks = outer.blocks
    this.line = outer.line
    return content
  }

  readBlocksOf(node: MarkupNode, style: Style): Block[] {
    return this.blocksOf(() => {
      this.readNode(node, style)
    })
  }

  readBlocksWithin(element: MarkupNode, style: Style): Block[] {
    return this.blocksOf(() => {
      this.readChildren(element, style)
    })
  }

  private blocksOf(read: () => void): Block[] {
    const content = this.readApart(read)
    if (!content.isInline) return content.blocks
    return tidyParagraphs(content.pieces).map((pieces) => ({ kind: 'paragraph', content: pieces }))
  }
}

// Two lists in a row are one in Markdown; a numbered one goes on only where its numbers do.
function continues(list: ListBlock, last: ListBlock): boolean {
  if (list.isOrdered !== last.isOrdered) return false
  return !list.isOrdered || list.start === last.start + last.items.length
}
