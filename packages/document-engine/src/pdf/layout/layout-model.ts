/**
 * A page as the layout sees it: in PDF points, from the upper left corner of the page as it is shown (its rotation and
 * its offset are taken off), y growing downwards.
 */
export interface PdfPage {
  /** From 1. */
  readonly number: number
  readonly width: number
  readonly height: number
  /** In the order of the file, which need not be the order of reading. Horizontal text only; no blank runs. */
  readonly runs: readonly TextRun[]
  readonly rules: readonly Rule[]
  readonly links: readonly LinkArea[]
}

export interface TextRun {
  /** One piece of one line, never empty; ligatures taken apart, in logical order. */
  readonly text: string
  readonly x: number
  /** Of the baseline. */
  readonly y: number
  readonly width: number
  readonly fontSize: number
  /** The same for the same font throughout the document; says nothing else. */
  readonly font: string
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isFixedPitch: boolean
}

/** A drawn line, or a filled box thin enough to be one; horizontal or vertical, `x1 ≤ x2` and `y1 ≤ y2`. */
export interface Rule {
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
}

/** Where a click leads to an absolute http(s) or mailto URL. */
export interface LinkArea {
  readonly x: number
  /** Of the upper edge. */
  readonly y: number
  readonly width: number
  readonly height: number
  readonly url: string
}

/** What whoever reads the text must know about a page. */
export interface PageRemark {
  /** From 1. */
  readonly page: number
  /** One line, of our own words alone. */
  readonly text: string
}

/** An entry of the document's own table of contents; `level` from 1. */
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
  /** Decided when the span is put into a line. */
  readonly hasBlankBefore: boolean
}

/** A line, or a piece of one between wide gaps; its spans stand in the order of reading. */
export interface Line extends Box {
  readonly kind: 'line'
  readonly page: number
  readonly spans: readonly Span[]
  readonly text: string
  readonly y: number
  /** Of most of its characters, as are the three flags. */
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
}

/** What a page holds once its rule tables are taken out. */
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
  /** What stands in the Markdown: `-` or `3.`. */
  readonly label: string
  /** What the mark looks like without its number: items of one list share it. */
  readonly style: string
  /** 1 for a bullet. */
  readonly ordinal: number
}

export interface TextBlock {
  readonly kind: 'text'
  readonly page: number
  readonly region: Region
  /** Never empty; without the marker when there is one. */
  readonly lines: readonly Line[]
  readonly marker: Marker | undefined
  /** Of the block's first line, its marker included, from the region's left edge. */
  readonly indent: number
  /** Of the text, from the region's left edge. */
  readonly textIndent: number
  /** White space above is wider than between its lines; true at the head of a region. */
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
