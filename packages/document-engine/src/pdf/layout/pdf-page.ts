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
