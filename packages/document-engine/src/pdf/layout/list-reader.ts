import { hasRoomFor } from './breaks.js'
import { endsSentence } from './characters.js'
import type { DocumentStyle } from './document-style.js'
import type { Line, Marker, Region, TextBlock } from './layout-model.js'
import { type MarkedLine, readMarker } from './list-markers.js'

const TOLERANCE_EM = 0.6

/** Tells list items from paragraphs that happen to begin with a number or a dash. One for each region. */
export class ListReader {
  /** The latest items, one for each place. */
  private latest: { style: string; ordinal: number; x: number }[] = []

  constructor(
    private readonly region: Region,
    private readonly style: DocumentStyle,
  ) {}

  /** The marker of `line` when an item begins there. `breaks`: a paragraph would begin there anyway. */
  markerOf(line: Line, next: Line | undefined, open: TextBlock | undefined, breaks: boolean): MarkedLine | undefined {
    const marked = readMarker(line)
    if (marked === undefined || this.isHeadingLike(line)) return undefined
    const sequel = [marked.marker, marked.otherMarker].find((marker) => this.isNextItem(marker, line))
    const isItem = sequel !== undefined || marked.isCertain || this.isFirstItem(marked, line, next, open, breaks)
    if (!isItem) return undefined
    const marker = sequel ?? marked.marker
    const { style, ordinal } = marker
    this.latest = [...this.latest.filter((item) => item.x < line.x1 - 2), { style, ordinal, x: line.x1 }]
    return { ...marked, marker }
  }

  /** The line goes on in the open item: below its text, not set apart. */
  continues(open: TextBlock, line: Line, isSetOff: boolean): boolean {
    if (open.marker === undefined || isSetOff) return false
    const x = this.region.left + open.textIndent
    return Math.abs(line.x1 - x) < TOLERANCE_EM * line.size && Math.abs(line.size - (open.lines[0]?.size ?? 0)) < 0.6
  }

  private isHeadingLike(line: Line): boolean {
    return (line.isBold && !this.style.isBodyBold) || line.size > this.style.bodySize * 1.15
  }

  private isNextItem(marker: Marker | undefined, line: Line): boolean {
    if (marker === undefined) return false
    return this.latest.some((item) => {
      const isLike = item.style === marker.style && Math.abs(item.x - line.x1) < TOLERANCE_EM * line.size * 1.5
      return isLike && (marker.kind === 'bullet' || marker.ordinal === item.ordinal + 1)
    })
  }

  /** A list within an item begins at the distance of its lines, further in than its mark. */
  private isBelowItem(line: Line, open: TextBlock | undefined): boolean {
    const last = open?.lines.at(-1)
    if (open === undefined || last === undefined) return false
    return (
      line.x1 - this.region.left > open.indent + 2 && (endsSentence(last.text) || hasRoomFor(last, line, this.region))
    )
  }

  /** Without an item before it, a mark counts where its text hangs or where the next line is the second item. */
  private isFirstItem(
    marked: MarkedLine,
    line: Line,
    next: Line | undefined,
    open: TextBlock | undefined,
    breaks: boolean,
  ): boolean {
    if (marked.text === undefined) return false
    const isIndented = line.x1 - this.region.left > TOLERANCE_EM * line.size
    if (!breaks && !(isIndented && this.isBelowItem(line, open))) return false
    const gap = marked.text.x1 - line.x1
    const follower = next === undefined ? undefined : readMarker(next)
    const isSequel = follower !== undefined && follower.marker.style === marked.marker.style
    const isHanging = next !== undefined && Math.abs(next.x1 - marked.text.x1) < 2.5 && gap > 0
    if (marked.marker.kind === 'bullet') return isSequel || isHanging || isIndented
    const isCounted = isSequel && follower.marker.ordinal === marked.marker.ordinal + 1
    return isCounted || isHanging || (isIndented && marked.marker.ordinal === 1)
  }
}
