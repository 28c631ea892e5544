import type { Block, Inline, ListItem } from './document-model.js'
import { type Handler, readChildrenApart } from './element-handler.js'
import { linkTarget } from './link-target.js'
import { attributeOf, beginningOf } from './markup-node.js'
import { isVisible, tidyLine } from './tidy-inline.js'

// Ways back from a footnote and handles of headings: they lead nowhere outside the page.
const HANDLE = /^(?:[\s#¶§↩↑⤴^∞]|🔗|⚓|\ufe0e|\ufe0f)*$/u

export const readLink: Handler = (element, reading, style) => {
  const reference = attributeOf(element, 'href')
  const url = style.isInLink ? undefined : linkTarget(reference, reading.baseUrl)
  if (url === undefined) {
    const isHandle = reference.includes('#') && !style.isInLink && HANDLE.test(beginningOf(element))
    if (!isHandle) reading.readChildren(element, style)
    return
  }
  const content = readChildrenApart(element, reading, { ...style, marks: 0, isInLink: true })
  if (content.isInline) {
    reading.addPiece({ kind: 'link', url, content: content.pieces, marks: style.marks })
    return
  }
  for (const block of linkBlocks(content.blocks, url)) reading.addBlock(block)
}

/** A link around blocks: its heading carries it, or else its first line with words, or its first picture. */
function linkBlocks(blocks: readonly Block[], url: string): readonly Block[] {
  return (
    linkFirst(blocks, url, (block) => block.kind === 'heading') ??
    linkFirst(blocks, url, (block) => block.kind === 'paragraph' && block.content.some(isWording)) ??
    linkFirst(blocks, url, (block) => block.kind === 'paragraph') ??
    blocks
  )
}

type Test = (block: Block) => boolean

function linkFirst(blocks: readonly Block[], url: string, isTarget: Test): Block[] | undefined {
  for (const [index, block] of blocks.entries()) {
    const linked = linkWithin(block, url, isTarget)
    if (linked !== undefined) return [...blocks.slice(0, index), linked, ...blocks.slice(index + 1)]
  }
  return undefined
}

function linkWithin(block: Block, url: string, isTarget: Test): Block | undefined {
  if ((block.kind === 'heading' || block.kind === 'paragraph') && isTarget(block))
    return { ...block, content: [{ kind: 'link', url, content: tidyLine(block.content), marks: 0 }] }
  if (block.kind === 'quote') {
    const inner = linkFirst(block.blocks, url, isTarget)
    return inner && { kind: 'quote', blocks: inner }
  }
  if (block.kind !== 'list') return undefined
  for (const [index, item] of block.items.entries()) {
    const inner = linkFirst(item.blocks, url, isTarget)
    if (inner !== undefined) return { ...block, items: replaced(block.items, index, { ...item, blocks: inner }) }
  }
  return undefined
}

function replaced(items: readonly ListItem[], index: number, item: ListItem): ListItem[] {
  return [...items.slice(0, index), item, ...items.slice(index + 1)]
}

function isWording(piece: Inline): boolean {
  return piece.kind !== 'image' && isVisible(piece)
}
