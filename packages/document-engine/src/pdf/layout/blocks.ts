import { beginsParagraph, isSetApart } from './breaks.js'
import type { DocumentStyle } from './document-style.js'
import type { Block, CodeBlock, Line, Marker, Region, TextBlock } from './layout-model.js'
import { isBareEntry, isLeaderLine } from './leaders.js'
import { ListReader } from './list-reader.js'

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
  /** A mark that stands on a line of its own, a little above or below its text. */
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

  /** Further out than the mark of the item it would belong to. */
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
