/**
 * Input of the layout: a page in PDF points, from the upper left corner of the displayed page (rotation and offset
 * applied), y growing downwards.
 */
export interface PdfPage {
  /** From 1. */
  readonly number: number
  readonly width: number
  readonly height: number
  /** Runs in file order, which may differ from reading order. Horizontal text only; no blank runs. */
  readonly runs: readonly TextRun[]
  readonly rules: readonly Rule[]
  readonly links: readonly LinkArea[]
  /** What the tags of the file say of this page; absent without tags. */
  readonly structure?: StructureNode | undefined
}

/** An element of a tagged file (PDF 32000-1, 14.7): its standard role, and its parts in reading order. */
export interface StructureNode {
  readonly role: string
  /** Alternative text; '' without one. */
  readonly alt: string
  /** Elements, and the ids of pieces of content. */
  readonly children: readonly (StructureNode | string)[]
}

/** Content id of text that the file declares to be no content: running heads, page numbers. */
export const ARTIFACT = 'artifact'

export interface TextRun {
  /** Text of a part of a line, never empty; without ligatures, in logical order. */
  readonly text: string
  readonly x: number
  /** Of the baseline. */
  readonly y: number
  readonly width: number
  readonly fontSize: number
  /** Identifies the font within the document. */
  readonly font: string
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isFixedPitch: boolean
  /** Id of the piece of tagged content that it is a part of, or `ARTIFACT`; absent outside of tags. */
  readonly contentId?: string | undefined
}

/** A drawn line, or a filled box thin enough to be one; horizontal or vertical, `x1 ≤ x2` and `y1 ≤ y2`. */
export interface Rule {
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
}

/** Area of a link to an absolute http(s) or mailto URL. */
export interface LinkArea {
  readonly x: number
  /** Of the upper edge. */
  readonly y: number
  readonly width: number
  readonly height: number
  readonly url: string
}

/** A note about a page for the reader of the Markdown. */
export interface PageRemark {
  /** From 1. */
  readonly page: number
  /** One line of fixed text, with nothing of the document. */
  readonly text: string
}

/** An entry of the document's outline; `level` from 1. */
export interface OutlineEntry {
  readonly title: string
  readonly level: number
}

/** All lengths in PDF points, y growing downwards; `size` is a font size. */
interface Box {
  readonly x1: number
  readonly x2: number
  readonly top: number
  readonly bottom: number
}

export interface Span {
  readonly text: string
  readonly x1: number
  readonly x2: number
  /** Of the baseline. */
  readonly y: number
  readonly size: number
  readonly font: string
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isFixedPitch: boolean
  /** '' outside links. */
  readonly url: string
  readonly script: 'base' | 'super' | 'sub'
  /** Set when the span is put into a line. */
  readonly hasBlankBefore: boolean
  readonly contentId?: string | undefined
}

/** A line, or a piece of one between wide gaps; its spans are in reading order. */
export interface Line extends Box {
  readonly kind: 'line'
  readonly page: number
  readonly spans: readonly Span[]
  readonly text: string
  readonly y: number
  /** Size of most of its characters; the three flags as well describe most of them. */
  readonly size: number
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isFixedPitch: boolean
}

/** Lines of one cell, from the top; empty where the cell is empty or covered by a spanning one. */
export type Cell = readonly Line[]

export interface Table extends Box {
  readonly kind: 'table'
  readonly page: number
  readonly rows: readonly (readonly Cell[])[]
  /** Whether tags say that it goes on with the rows of the page before. */
  readonly isContinued?: boolean
}

/** Content of a page without its ruled tables. */
export type PageItem = Line | Table

/** A stretch of one column; its lines are whole. `left` and `right` are the edges of its text. */
export interface Region {
  readonly page: number
  readonly items: readonly PageItem[]
  readonly left: number
  readonly right: number
}

export interface Marker {
  readonly kind: 'bullet' | 'ordered'
  /** Marker in the Markdown: `-` or `3.`. */
  readonly label: string
  /** Style of the marker without its number; equal for the items of one list. */
  readonly style: string
  /** Number of the item; 1 for a bullet. */
  readonly ordinal: number
}

export interface TextBlock {
  readonly kind: 'text'
  readonly page: number
  readonly region: Region
  /** Lines, never empty; without the marker. */
  readonly lines: readonly Line[]
  readonly marker: Marker | undefined
  /** Indent of the first line, marker included, from the region's left edge. */
  readonly indent: number
  /** Indent of the text, from the region's left edge. */
  readonly textIndent: number
  /** Whether the space above is wider than between its lines; true at the top of a region. */
  readonly isSetOff: boolean
}

export interface CodeBlock {
  readonly kind: 'code'
  readonly page: number
  readonly region: Region
  readonly lines: readonly Line[]
}

export interface TableBlock {
  readonly kind: 'table'
  readonly page: number
  readonly region: Region
  readonly table: Table
}

export type Block = TextBlock | CodeBlock | TableBlock

export function middleOf(box: Box): number {
  return (box.top + box.bottom) / 2
}
