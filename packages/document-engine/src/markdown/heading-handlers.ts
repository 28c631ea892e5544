import { type Block, BOLD, type Inline } from './document-model.js'
import { type Content, type Handler, readBlock, readChildrenApart } from './element-handler.js'
import { attributeOf, type MarkupNode, tagOf } from './markup-node.js'
import { blank, isVisible, isWholly, tidyLine, withMark, withoutMark } from './tidy-inline.js'

// A heading that was never closed swallows what follows it; this much text is no heading.
const LONGEST_HEADING = 400

export const readHeading: Handler = (element, reading, style) => {
  if (style.isInHeading) {
    readBlock(element, reading, style)
    return
  }
  reading.endParagraph()
  const { line, rest } = headingLine(readChildrenApart(element, reading, { ...style, isInHeading: true }))
  // Bold says nothing in a heading.
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
  const { line, rest } = headingLine(readChildrenApart(element, reading, { ...style, isInHeading: true }))
  if (line.length > 0) reading.addBlock({ kind: 'paragraph', content: withMark(line, BOLD) })
  for (const block of rest) reading.addBlock(block)
}

/** One line of what an element holds that has to be one, and the blocks that cannot be part of it. */
export function headingLine(content: Content): { line: Inline[]; rest: Block[] } {
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
