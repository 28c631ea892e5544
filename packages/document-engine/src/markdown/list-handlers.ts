import type { Block, Inline, ListItem } from './document-model.js'
import { type Handler, isTooNested, nested, readBlock, type Reading, type Style } from './element-handler.js'
import { attributeOf, childrenOf, type MarkupNode, tagOf, textOf } from './markup-node.js'
import { isVisible } from './tidy-inline.js'

export const readList: Handler = (element, reading, style) => {
  if (isTooNested(style)) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const items: ListItem[] = []
  readItems(element, reading, nested(style), items)
  if (items.length === 0) return
  reading.addBlock({ kind: 'list', isOrdered: tagOf(element) === 'ol', start: startOf(element), items })
}

/** An item without its list is one all the same; those beside it join it. */
export const readStrayItem: Handler = (element, reading, style) => {
  if (isTooNested(style)) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const blocks = reading.readBlocksWithin(element, nested(style))
  if (blocks.length > 0) reading.addBlock({ kind: 'list', isOrdered: false, start: 1, items: [itemOf(blocks)] })
}

function readItems(list: MarkupNode, reading: Reading, style: Style, items: ListItem[]): void {
  for (const child of childrenOf(list)) {
    const tag = tagOf(child)
    if (tag === 'li') addItem(reading.readBlocksWithin(child, style), items)
    else if (tag === 'ul' || tag === 'ol') addToLast(reading.readBlocksOf(child, style), items)
    else if (hasItems(child)) readItems(child, reading, style, items)
    else if (tag !== '' || (textOf(child)?.trim() ?? '') !== '') addItem(reading.readBlocksOf(child, style), items)
  }
}

function hasItems(node: MarkupNode): boolean {
  return tagOf(node) !== '' && [...childrenOf(node)].some((child) => tagOf(child) === 'li')
}

function addItem(blocks: Block[], items: ListItem[]): void {
  if (blocks.length > 0) items.push(itemOf(blocks))
}

/** A list that stands between items instead of within one belongs to the one before it. */
function addToLast(blocks: Block[], items: ListItem[]): void {
  const last = items.at(-1)
  if (last === undefined) addItem(blocks, items)
  else for (const block of blocks) last.blocks.push(block)
}

function itemOf(blocks: Block[]): ListItem {
  const [first, ...rest] = blocks
  if (first?.kind !== 'paragraph') return { task: 'none', blocks }
  const [box, ...words] = first.content
  if (box?.kind !== 'task') return { task: 'none', blocks }
  const line = words.some(isVisible) ? [{ ...first, content: trimmed(words) }] : []
  return { task: box.isDone ? 'done' : 'open', blocks: [...line, ...rest] }
}

function trimmed(pieces: readonly Inline[]): readonly Inline[] {
  const [first, ...rest] = pieces
  return first?.kind === 'text' ? [{ ...first, text: first.text.trimStart() }, ...rest] : pieces
}

function startOf(list: MarkupNode): number {
  const first = [...childrenOf(list)].find((child) => tagOf(child) === 'li')
  const start = attributeOf(list, 'start') || (first === undefined ? '' : attributeOf(first, 'value'))
  // CommonMark reads nine digits at most and no sign.
  return /^\d{1,9}$/.test(start) ? Number(start) : 1
}
