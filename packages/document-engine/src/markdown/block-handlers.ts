import { type Block, BOLD, type Inline, type ListItem } from './document-model.js'
import {
  type Handler,
  isTooNested,
  nested,
  readBlock,
  readChildrenApart,
  type Reading,
  type Style,
} from './element-handler.js'
import { headingLine } from './heading-handlers.js'
import { childrenOf, type MarkupNode, tagOf } from './markup-node.js'
import { withMark } from './tidy-inline.js'

/** Markdown has no terms and definitions: each group becomes an item that begins with its terms in bold. */
export const readDefinitionList: Handler = (element, reading, style) => {
  if (isTooNested(style) || style.isInHeading) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const groups: Group[] = []
  readGroups(element, reading, nested(style), groups)
  const items = groups.map(definitionItem).filter((item) => item.blocks.length > 0)
  if (items.length > 0) reading.addBlock({ kind: 'list', isOrdered: false, start: 1, items })
}

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
  const { line, rest } = headingLine(readChildrenApart(term, reading, { ...style, isInHeading: true }))
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
