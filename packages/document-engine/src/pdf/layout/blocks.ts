import { firstCharacter } from '../../markdown/escape-markdown.js'
import { type DocumentStyle, sizeClass } from './document-style.js'
import type { Block, CodeBlock, Line, Marker, Region, TextBlock } from './layout-model.js'
import { endsSentence, isBareEntry, isLeaderLine, isLowerCase } from './line-text.js'
import { type MarkedLine, readMarker } from './list-markers.js'

const INDENT_EM = 0.8
const MOST_INDENT_EM = 6
const TITLE_RATIO = 1.25

/** Whether a new paragraph begins at `line`. `block` holds the lines of the paragraph so far and is not empty. */
function beginsParagraph(block: readonly Line[], line: Line, region: Region, style: DocumentStyle): boolean {
  const last = block.at(-1)
  if (last === undefined) return true
  if (isSetApart(block, line, style) || isOtherStyle(last, line, region)) return true
  if (isIndentChange(block, last, line, region)) return true
  // Titles are broken between phrases, not where the column ends.
  const isTitle = last.size > style.bodySize * TITLE_RATIO
  return !isTitle && isShortLast(last, line, region)
}

/** Whether the space is wider than between the lines of the paragraph, or of the document if it has one line so far. */
function isSetApart(block: readonly Line[], line: Line, style: DocumentStyle): boolean {
  const last = block.at(-1)
  if (last === undefined) return true
  const distance = line.y - last.y
  if (distance < -line.size * 0.5) return true
  const before = block.at(-2)
  const usual = before === undefined ? style.leadingOf(Math.max(last.size, line.size)) : last.y - before.y
  return distance > Math.max(usual * 1.18, usual + 1)
}

/** Whether a line looks like a heading: another size, or bold, and shorter than the column. */
function isOtherStyle(last: Line, line: Line, region: Region): boolean {
  if (Math.abs(sizeClass(last.size) - sizeClass(line.size)) > Math.max(0.5, line.size * 0.06)) return true
  if (last.isBold === line.isBold) return false
  return last.isBold ? hasRoomFor(last, line, region) : hasRoomFor(last, line, region) || endsSentence(last.text)
}

function isIndentChange(block: readonly Line[], last: Line, line: Line, region: Region): boolean {
  const em = line.size
  const first = block[0] ?? last
  const shift = line.x1 - last.x1
  if (isCentred(last, region) && isCentred(line, region)) return false
  if (shift > INDENT_EM * em && shift < MOST_INDENT_EM * em) {
    const isHanging = block.length === 1 && first.x1 - region.left < INDENT_EM * em && !endsSentence(last.text)
    return !isHanging || hasRoomFor(last, line, region)
  }
  const isOutdented = shift < -INDENT_EM * em
  return isOutdented && block.length > 1 && first.x1 < last.x1 - INDENT_EM * em && line.x1 < first.x1 + INDENT_EM * em
}

/** Whether a line ends a paragraph: it leaves room for the next word. */
function isShortLast(last: Line, line: Line, region: Region): boolean {
  if (!hasRoomFor(last, line, region)) return false
  if (!isLowerCase(firstCharacter(line.text))) return true
  return endsSentence(last.text) && region.right - last.x2 > (region.right - region.left) * 0.4
}

/** Whether the first word of `line` would have fitted behind `last`, with a margin. */
export function hasRoomFor(last: Line, line: Line, region: Region): boolean {
  const [word = ''] = line.text.split(' ')
  const perCharacter = (line.x2 - line.x1) / Math.max(1, line.text.length)
  const room = region.right - last.x2
  return room > Math.min(word.length, 25) * perCharacter + 1.2 * line.size
}

function isCentred(line: Line, region: Region): boolean {
  const before = line.x1 - region.left
  const after = region.right - line.x2
  return before > line.size * 1.5 && Math.abs(before - after) < line.size * 1.2
}

const TOLERANCE_EM = 0.6

/** Distinguishes list items from paragraphs that begin with a number or a dash. One for each region. */
class ListReader {
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

  /** Whether the line continues the open item: below its text, without extra space. */
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

  /** Whether a nested list begins: without extra space, and further in than the marker of its item. */
  private isBelowItem(line: Line, open: TextBlock | undefined): boolean {
    const last = open?.lines.at(-1)
    if (open === undefined || last === undefined) return false
    return (
      line.x1 - this.region.left > open.indent + 2 && (endsSentence(last.text) || hasRoomFor(last, line, this.region))
    )
  }

  /** Whether a marker without an item before it begins a list: its text hangs, or the next line is the second item. */
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

/** Paragraphs, list items, code and tables of one region, from the top. */
export function blocksOf(region: Region, style: DocumentStyle): Block[] {
  const reader = new BlockReader(region, style)
  for (const [index, item] of region.items.entries()) {
    const next = region.items[index + 1]
    if (item.kind === 'table') reader.addTable({ kind: 'table', page: region.page, region, table: item })
    else reader.addLine(item, next?.kind === 'line' ? next : undefined)
  }
  return reader.finish()
}

type OpenBlock = { -readonly [Key in keyof TextBlock]: TextBlock[Key] } & { lines: Line[] }

const ENTRY_MARKER: Marker = { kind: 'bullet', label: '-', style: '…', ordinal: 1 }

class BlockReader {
  private readonly blocks: Block[] = []
  private readonly lists: ListReader
  private open: OpenBlock | undefined
  private code: Line[] = []
  /** A marker on a line of its own, a little above or below its text. */
  private pending: { marker: Marker; x: number } | undefined

  constructor(
    private readonly region: Region,
    private readonly style: DocumentStyle,
  ) {
    this.lists = new ListReader(region, style)
  }

  addTable(block: Block): void {
    this.close()
    this.blocks.push(block)
  }

  addLine(line: Line, next: Line | undefined): void {
    if (isLeaderLine(line) || (isBareEntry(line) && this.isAmongEntries(next))) {
      this.addEntry(line)
      return
    }
    if (line.isFixedPitch && !this.style.isBodyFixedPitch) {
      if (this.code.length === 0) this.close()
      this.code.push(line)
      return
    }
    this.closeCode()
    const open = this.open
    const breaks = open === undefined || open.marker === ENTRY_MARKER || this.begins(open, line)
    const isSetOff = open === undefined || isSetApart(open.lines, line, this.style)
    const marked = this.lists.markerOf(line, next, open, breaks)
    if (marked !== undefined && marked.text === undefined) {
      this.close()
      this.pending = { marker: marked.marker, x: line.x1 }
    } else if (marked?.text !== undefined) this.beginItem(marked.text, marked.marker, line.x1, isSetOff)
    else if (this.pending !== undefined) this.beginItem(line, this.pending.marker, this.pending.x, isSetOff)
    else if (open !== undefined && (!breaks || this.lists.continues(open, line, isSetOff))) open.lines.push(line)
    else this.begin(line, isSetOff)
  }

  /** Whether the line begins further out than the marker of its item. */
  private isOutside(open: OpenBlock, line: Line): boolean {
    return open.marker !== undefined && line.x1 - this.region.left < open.indent - line.size * 0.5
  }

  /** An entry of a table of contents or an index, as a list item; its first lines have no dots. */
  private addEntry(line: Line): void {
    const { open } = this
    const goesOn = open?.marker === undefined && open !== undefined && !this.begins(open, line) && open.lines.length < 3
    if (goesOn) open.lines.push(line)
    else this.begin(line, false)
    if (this.open !== undefined) this.open.marker = ENTRY_MARKER
  }

  private isAmongEntries(next: Line | undefined): boolean {
    return this.open?.marker === ENTRY_MARKER || (next !== undefined && isLeaderLine(next))
  }

  private begins(open: OpenBlock, line: Line): boolean {
    return this.isOutside(open, line) || beginsParagraph(open.lines, line, this.region, this.style)
  }

  finish(): Block[] {
    this.close()
    return this.blocks
  }

  private begin(line: Line, isSetOff: boolean): void {
    this.close()
    const indent = line.x1 - this.region.left
    const { region } = this
    this.open = {
      kind: 'text',
      page: region.page,
      region,
      lines: [line],
      marker: undefined,
      indent,
      textIndent: indent,
      isSetOff,
    }
  }

  private beginItem(text: Line, marker: Marker, x: number, isSetOff: boolean): void {
    this.begin(text, isSetOff)
    if (this.open === undefined) return
    this.open.marker = marker
    this.open.indent = x - this.region.left
  }

  private close(): void {
    this.closeCode()
    if (this.open !== undefined) this.blocks.push(this.open)
    this.open = undefined
    this.pending = undefined
  }

  private closeCode(): void {
    if (this.code.length === 0) return
    const block: CodeBlock = { kind: 'code', page: this.region.page, region: this.region, lines: this.code }
    this.blocks.push(block)
    this.code = []
  }
}
