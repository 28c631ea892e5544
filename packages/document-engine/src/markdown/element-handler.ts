import { type Block, type Inline } from './document-model.js'
import { type MarkupNode } from './markup-node.js'

/** State that an element inherits from its ancestors. */
export interface Style {
  readonly marks: number
  readonly isInLink: boolean
  /** Within a heading, term or caption: content is one line, and buttons hold text of the document. */
  readonly isInHeading: boolean
  /** Within `sub` or `sup`; nested ones are ignored. */
  readonly isInScript: boolean
  /** Number of lists, quotes and tables around. */
  readonly nesting: number
}

/** Content of an element, read apart: blocks, or pieces of the surrounding line. */
export type Content =
  | { readonly isInline: true; readonly pieces: readonly Inline[] }
  | { readonly isInline: false; readonly blocks: Block[] }

/** The document read so far, to which handlers of elements add. */
export interface Reading {
  readonly baseUrl: string
  addText(text: string, style: Style): void
  addPiece(piece: Inline): void
  /** Ends the paragraph before it. */
  addBlock(block: Block): void
  endParagraph(): void
  readNode(node: MarkupNode, style: Style): void
  readChildren(node: MarkupNode, style: Style): void
  /** Returns what `read` adds, instead of adding it to the document. */
  readApart(read: () => void): Content
  /** The blocks of a node itself; inline content becomes a paragraph. */
  readBlocksOf(node: MarkupNode, style: Style): Block[]
  /** The blocks within an element. */
  readBlocksWithin(element: MarkupNode, style: Style): Block[]
}

export type Handler = (element: MarkupNode, reading: Reading, style: Style) => void

// Most levels of lists, quotes and tables: each costs its indent on every line. Deeper ones are read as their content.
const DEEPEST_NESTING = 24

export function marked(style: Style, mark: number): Style {
  return { ...style, marks: style.marks | mark }
}

export function readChildrenApart(element: MarkupNode, reading: Reading, style: Style): Content {
  return reading.readApart(() => {
    reading.readChildren(element, style)
  })
}

export const readBlock: Handler = (element, reading, style) => {
  reading.endParagraph()
  reading.readChildren(element, style)
  reading.endParagraph()
}

/**
 * The handler of a list, quote or table. Below the deepest level only its content is read, and also in a heading if it
 * needs the `room` of several lines.
 */
export function nesting(handler: Handler, room: 'any' | 'lines' = 'any'): Handler {
  return (element, reading, style) => {
    const isPlain = style.nesting >= DEEPEST_NESTING || (style.isInHeading && room === 'lines')
    if (isPlain) readBlock(element, reading, style)
    else handler(element, reading, { ...style, nesting: style.nesting + 1 })
  }
}
