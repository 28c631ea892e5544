import {
  blank,
  type Block,
  BOLD,
  type Inline,
  isVisible,
  isWholly,
  type ListItem,
  tidyLine,
  withMark,
  withoutMark,
} from './document-model.js'
import { type Handler, nesting, readBlock, readChildrenApart, type Reading, type Style } from './element-handler.js'
import { attributeOf, childrenOf, type MarkupNode, tagOf, textOf } from './markup-node.js'

// A heading without an end tag contains what follows it; longer text is no heading.
const LONGEST_HEADING = 400

export const readHeading: Handler = (element, reading, style) => {
  if (style.isInHeading) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const { line, rest } = readLine(element, reading, style)
  // Headings are bold anyway.
  const content = isWholly(line, BOLD) ? withoutMark(line, BOLD) : line
  if (content.some(isWording)) reading.addBlock({ kind: 'heading', level: levelOf(element), content })
  else if (content.length > 0) reading.addBlock({ kind: 'paragraph', content })
  for (const block of rest) reading.addBlock(block)
}

export const readSummary: Handler = (element, reading, style) => {
  if (style.isInHeading) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const { line, rest } = readLine(element, reading, style)
  if (line.length > 0) reading.addBlock({ kind: 'paragraph', content: withMark(line, BOLD) })
  for (const block of rest) reading.addBlock(block)
}

/** The content of an element that has room for one line, and the blocks that do not fit into it. */
export function readLine(element: MarkupNode, reading: Reading, style: Style): { line: Inline[]; rest: Block[] } {
  const content = readChildrenApart(element, reading, { ...style, isInHeading: true })
  if (content.isInline) return { line: tidyLine(content.pieces), rest: [] }
  const lines: Inline[][] = []
  for (const block of content.blocks) if (block.kind === 'paragraph') lines.push([...block.content])
  const isOneLine = lines.length === content.blocks.length && lengthOf(lines.flat()) <= LONGEST_HEADING
  const [first] = content.blocks
  if (isOneLine) return { line: tidyLine(lines.flatMap((line) => [...line, blank(0)])), rest: [] }
  if (first?.kind !== 'paragraph') return { line: [], rest: content.blocks }
  return { line: tidyLine(first.content), rest: content.blocks.slice(1) }
}

function levelOf(element: MarkupNode): number {
  const level = Number(/^h([1-6])$/.exec(tagOf(element))?.[1] ?? attributeOf(element, 'aria-level'))
  return Number.isInteger(level) && level >= 1 ? Math.min(level, 6) : 2
}

function isWording(piece: Inline): boolean {
  if (piece.kind === 'link') return piece.content.some(isWording)
  return piece.kind !== 'image' && isVisible(piece)
}

function lengthOf(pieces: readonly Inline[]): number {
  let length = 0
  for (const piece of pieces) {
    if (piece.kind === 'text' || piece.kind === 'code') length += piece.text.length
    else if (piece.kind === 'link') length += lengthOf(piece.content)
  }
  return length
}

export const readList = nesting((element, reading, style) => {
  reading.endParagraph()
  const items: ListItem[] = []
  readItems(element, reading, style, items)
  if (items.length === 0) return
  reading.addBlock({ kind: 'list', isOrdered: tagOf(element) === 'ol', start: startOf(element), items })
})

/** An `li` outside of a list becomes a list; adjacent ones are joined. */
export const readStrayItem = nesting((element, reading, style) => {
  reading.endParagraph()
  const blocks = reading.readBlocksWithin(element, style)
  if (blocks.length > 0) reading.addBlock({ kind: 'list', isOrdered: false, start: 1, items: [itemOf(blocks)] })
})

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

/** A list between two items, instead of within one, belongs to the item before it. */
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
  // CommonMark allows at most nine digits and no sign.
  return /^\d{1,9}$/.test(start) ? Number(start) : 1
}

/** Markdown has no definition lists: each group becomes an item that begins with its terms in bold. */
export const readDefinitionList = nesting((element, reading, style) => {
  reading.endParagraph()
  const groups: Group[] = []
  readGroups(element, reading, style, groups)
  const items = groups.map(definitionItem).filter((item) => item.blocks.length > 0)
  if (items.length > 0) reading.addBlock({ kind: 'list', isOrdered: false, start: 1, items })
}, 'lines')

interface Group {
  readonly terms: (readonly Inline[])[]
  readonly definitions: Block[][]
}

function readGroups(list: MarkupNode, reading: Reading, style: Style, groups: Group[]): void {
  for (const child of childrenOf(list)) {
    const tag = tagOf(child)
    if (tag === 'dt') addTerm(child, reading, style, groups)
    else if (tag === 'dd') addDefinition(reading.readBlocksWithin(child, style), groups)
    else if (tag === 'div') readGroups(child, reading, style, groups)
    else if (tag !== '') groups.push({ terms: [], definitions: [reading.readBlocksOf(child, style)] })
  }
}

function addTerm(term: MarkupNode, reading: Reading, style: Style, groups: Group[]): void {
  const { line, rest } = readLine(term, reading, style)
  const last = groups.at(-1)
  const definitions = rest.length > 0 ? [rest] : []
  if (last === undefined || last.definitions.length > 0) groups.push({ terms: [line], definitions })
  else {
    last.terms.push(line)
    last.definitions.push(...definitions)
  }
}

function addDefinition(blocks: Block[], groups: Group[]): void {
  const last = groups.at(-1)
  if (last === undefined) groups.push({ terms: [], definitions: [blocks] })
  else last.definitions.push(blocks)
}

function definitionItem(group: Group): ListItem {
  const definitions = group.definitions.filter((blocks) => blocks.length > 0)
  const terms = group.terms.filter((line) => line.length > 0)
  const head = terms.flatMap((line, index) => [...(index > 0 ? [text(', ')] : []), ...withMark(line, BOLD)])
  if (head.length === 0) return { task: 'none', blocks: definitions.flat() }
  const [first, ...rest] = definitions[0] ?? []
  if (definitions.length === 1 && first?.kind === 'paragraph') {
    const content = [...head, text(endsWithColon(head) ? ' ' : ': '), ...first.content]
    return { task: 'none', blocks: [{ kind: 'paragraph', content }, ...rest] }
  }
  return { task: 'none', blocks: [{ kind: 'paragraph', content: head }, ...severalDefinitions(definitions)] }
}

function severalDefinitions(definitions: Block[][]): Block[] {
  if (definitions.length < 2) return definitions.flat()
  const items = definitions.map((blocks): ListItem => ({ task: 'none', blocks }))
  return [{ kind: 'list', isOrdered: false, start: 1, items }]
}

function text(characters: string): Inline {
  return { kind: 'text', text: characters, marks: 0 }
}

function endsWithColon(line: readonly Inline[]): boolean {
  const last = line.at(-1)
  return last?.kind === 'text' && /[:：]$/.test(last.text)
}
