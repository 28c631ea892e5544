import { type Block, type Inline } from './document-model.js'
import { type MarkupNode } from './markup-node.js'

/** What an element has from those around it. */
export interface Style {
  readonly marks: number
  readonly isInLink: boolean
  /** In headings, terms and captions a button holds words of the document, and there is room for a line only. */
  readonly isInHeading: boolean
  /** Scripts within scripts are set as the outermost. */
  readonly isInScript: boolean
  /** Lists, quotes and tables around. */
  readonly nesting: number
}

/** Read apart from the rest: either blocks, or pieces of the line the element stands in. */
export type Content =
  | { readonly isInline: true; readonly pieces: readonly Inline[] }
  | { readonly isInline: false; readonly blocks: Block[] }

/** The document as far as it was read; handlers of elements add to it. */
export interface Reading {
  readonly baseUrl: string
  addText(text: string, style: Style): void
  addPiece(piece: Inline): void
  /** Ends the paragraph before it. */
  addBlock(block: Block): void
  endParagraph(): void
  readNode(node: MarkupNode, style: Style): void
  readChildren(node: MarkupNode, style: Style): void
  /** What `read` adds, apart from the document. */
  readApart(read: () => void): Content
  /** The blocks of an element itself; a line of its own becomes a paragraph. */
  readBlocksOf(node: MarkupNode, style: Style): Block[]
  /** The blocks within an element. */
  readBlocksWithin(element: MarkupNode, style: Style): Block[]
}

export type Handler = (element: MarkupNode, reading: Reading, style: Style) => void

// Deeper lists, quotes and tables are read as what they hold: each level costs its indent on every line.
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
 * The handler of a list, quote or table. Below the deepest level the element is read as what it holds; so it is in a heading
 * where it needs the `room` of several lines.
 */
export function nesting(handler: Handler, room: 'any' | 'lines' = 'any'): Handler {
  return (element, reading, style) => {
    const isPlain = style.nesting >= DEEPEST_NESTING || (style.isInHeading && room === 'lines')
    if (isPlain) readBlock(element, reading, style)
    else handler(element, reading, { ...style, nesting: style.nesting + 1 })
  }
}
