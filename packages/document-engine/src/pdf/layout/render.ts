import { fenceFor } from '../../markdown/escape-markdown.js'
import { escapePipes } from '../../markdown/table-writer.js'
import type { DocumentStyle } from './document-style.js'
import { inlineMarkdown } from './inline.js'
import type { Block, Cell, CodeBlock, Line, PageRemark, Table, TextBlock } from './layout-model.js'
import { gapBetween } from './lines.js'

const MOST_BLANK_LINES = 3
const MOST_INDENT = 120

/** Fenced code: indentation from where the lines begin, blank lines from the distance of baselines. */
function codeMarkdown(block: CodeBlock, leading: number): string {
  const advance = advanceOf(block.lines)
  const lefts = leftEdges(block.lines)
  const pitch = pitchOf(block.lines) ?? leading
  const texts: string[] = []
  let above: Line | undefined
  for (const [index, line] of block.lines.entries()) {
    const left = lefts[index] ?? line.x1
    const blank = above === undefined ? 0 : Math.round((line.y - above.y) / pitch) - 1
    for (let count = 0; count < Math.min(blank, MOST_BLANK_LINES); count += 1) texts.push('')
    const indent = Math.min(MOST_INDENT, Math.round((line.x1 - left) / advance))
    texts.push((' '.repeat(indent) + codeText(line, advance)).trimEnd())
    above = line
  }
  const text = texts.join('\n')
  const fence = fenceFor(text, 3)
  return `${fence}\n${text}\n${fence}`
}

/** Least distance, in points, of columns between which code is continued; indents are smaller. */
const LEAST_COLUMN_SHIFT = 100

/** For each line, the left edge of the code in its column. */
function leftEdges(lines: readonly Line[]): number[] {
  const parts: Line[][] = []
  for (const [index, line] of lines.entries()) {
    const above = lines[index - 1]
    const isHigher = above !== undefined && (line.page !== above.page || line.y < above.y)
    if (above === undefined || (isHigher && Math.abs(line.x1 - above.x1) > LEAST_COLUMN_SHIFT)) parts.push([])
    parts.at(-1)?.push(line)
  }
  return parts.flatMap((part) => {
    const left = part.reduce((least, line) => Math.min(least, line.x1), Infinity)
    return part.map(() => left)
  })
}

/** Width of a character. */
function advanceOf(lines: readonly Line[]): number {
  const advances = lines
    .flatMap((line) => line.spans)
    .map((span) => (span.x2 - span.x1) / span.text.length)
    .filter((advance) => advance > 0)
    .sort((a, b) => a - b)
  return advances[advances.length >>> 1] ?? 6
}

/** The least distance of baselines that occurs more than once, else the least one. */
function pitchOf(lines: readonly Line[]): number | undefined {
  const distances = lines
    .slice(1)
    .map((line, index) => line.y - (lines[index]?.y ?? 0))
    .filter((distance) => distance > sizeOf(lines) * 0.7)
    .sort((a, b) => a - b)
  return distances.find((distance, index) => (distances[index + 1] ?? Infinity) - distance < 0.6) ?? distances[0]
}

function sizeOf(lines: readonly Line[]): number {
  return lines[0]?.size ?? 10
}

function codeText(line: Line, advance: number): string {
  let text = ''
  for (const [index, span] of line.spans.entries()) {
    const before = line.spans[index - 1]
    const gap = before === undefined ? 0 : Math.round(gapBetween(before, span) / advance)
    text += ' '.repeat(Math.max(0, Math.min(gap, MOST_INDENT))) + span.text
  }
  return text.replaceAll('\u00a0', ' ').replaceAll('\u00ad', '-')
}

const TOLERANCE_EM = 0.6

interface Level {
  readonly indent: number
  readonly textIndent: number
  readonly style: string
  /** Blanks in front of content below the item. */
  readonly inset: number
}

/** Nests list items by the indents of their markers; a paragraph outside of them ends all lists. */
class ListNesting {
  private levels: Level[] = []

  /** Blanks in front of the item. */
  enter(block: TextBlock): string {
    const { marker } = block
    if (marker === undefined) return ''
    const tolerance = TOLERANCE_EM * (block.lines[0]?.size ?? 10)
    this.leave(block.indent, tolerance)
    const last = this.levels.at(-1)
    const isNested = last !== undefined && block.indent > last.indent + tolerance
    if (!isNested && last !== undefined) this.levels.pop()
    const outer = this.levels.at(-1)?.inset ?? 0
    const inset = outer + marker.label.length + 1
    this.levels.push({ indent: block.indent, textIndent: block.textIndent, style: marker.style, inset })
    return ' '.repeat(outer)
  }

  /** Blanks in front of a paragraph that stands in an open item; undefined when it ends the list. */
  insetOf(block: TextBlock): string | undefined {
    const tolerance = TOLERANCE_EM * (block.lines[0]?.size ?? 10)
    const [first, second] = block.lines
    // A first line indented as far as the items' text does not make the paragraph a part of the item.
    const isWholly = first === undefined || second === undefined || second.x1 > first.x1 - tolerance
    if (!isWholly) return undefined
    const level = this.levels.findLast((one) => Math.abs(one.textIndent - block.indent) < tolerance)
    return level === undefined || level.textIndent < tolerance ? undefined : ' '.repeat(level.inset)
  }

  end(): void {
    this.levels = []
  }

  get isOpen(): boolean {
    return this.levels.length > 0
  }

  private leave(indent: number, tolerance: number): void {
    while (this.levels.length > 1 && (this.levels.at(-1)?.indent ?? 0) > indent + tolerance) this.levels.pop()
  }
}

/** A GFM table; its first row is the head. */
function tableMarkdown(table: Table, style: DocumentStyle): string {
  const columns = table.rows.reduce((most, row) => Math.max(most, row.length), 0)
  const rows = table.rows.map((row, index) => rowMarkdown(row, columns, style, index === 0))
  const [head = '', ...body] = rows
  return [head, `|${' --- |'.repeat(columns)}`, ...body].join('\n')
}

function rowMarkdown(row: readonly Cell[], columns: number, style: DocumentStyle, isHead: boolean): string {
  const cells = Array.from({ length: columns }, (_, index) =>
    escapePipes(inlineMarkdown(row[index] ?? [], style, { isPlain: isHead, isLineStart: false, isInCell: true })),
  )
  return `| ${cells.join(' | ')} |`
}

/**
 * Markdown of the blocks, with a line `<!-- page N -->` in front of the first one that begins on page N, and the remarks
 * on pages up to there before it. Without blocks there are no remarks.
 */
export function renderBlocks(
  blocks: readonly Block[],
  remarks: readonly PageRemark[],
  headings: ReadonlyMap<TextBlock, number>,
  style: DocumentStyle,
): string {
  const renderer = new Renderer([...remarks], headings, style)
  for (const block of blocks) renderer.add(block)
  return renderer.finish()
}

class Renderer {
  private readonly parts: string[] = []
  private readonly lists = new ListNesting()
  private page = 1
  private isAfterItem = false

  constructor(
    private readonly remarks: PageRemark[],
    private readonly headings: ReadonlyMap<TextBlock, number>,
    private readonly style: DocumentStyle,
  ) {}

  add(block: Block): void {
    this.pushRemarks(block.page)
    if (block.page > this.page) {
      this.page = block.page
      this.push(`<!-- page ${String(block.page)} -->`)
    }
    if (block.kind === 'text') this.addText(block)
    else {
      const leading = this.style.leadingOf(block.kind === 'code' ? (block.lines[0]?.size ?? 10) : 10)
      this.push(block.kind === 'code' ? codeMarkdown(block, leading) : tableMarkdown(block.table, this.style))
      this.lists.end()
    }
  }

  finish(): string {
    if (this.parts.length === 0) return ''
    this.pushRemarks(Infinity)
    return `${this.parts.join('')}\n`
  }

  private pushRemarks(untilPage: number): void {
    for (let next = this.remarks[0]; next !== undefined && next.page <= untilPage; next = this.remarks[0]) {
      this.remarks.shift()
      this.push(`<!-- ${next.text} -->`)
    }
  }

  private addText(block: TextBlock): void {
    const level = this.headings.get(block)
    const text = inlineMarkdown(block.lines, this.style, {
      isPlain: level !== undefined,
      isLineStart: level === undefined,
    })
    if (text === '') return
    if (block.marker !== undefined) {
      this.pushItem(`${this.lists.enter(block)}${block.marker.label} ${text}`)
      return
    }
    const inset = level === undefined && this.lists.isOpen ? this.lists.insetOf(block) : undefined
    if (inset === undefined) this.lists.end()
    this.push(level === undefined ? (inset ?? '') + text : `${'#'.repeat(level)} ${text}`)
  }

  private push(markdown: string): void {
    this.parts.push(this.parts.length === 0 ? markdown : `\n\n${markdown}`)
    this.isAfterItem = false
  }

  private pushItem(markdown: string): void {
    const separator = this.isAfterItem ? '\n' : '\n\n'
    this.parts.push(this.parts.length === 0 ? markdown : separator + markdown)
    this.isAfterItem = true
  }
}
