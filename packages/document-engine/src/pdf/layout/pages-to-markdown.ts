import { firstCharacter } from '../../markdown/escape-markdown.js'
import { blocksOf, hasRoomFor } from './blocks.js'
import { takeOpenTables } from './borderless-tables.js'
import { documentStyle, sizeClass } from './document-style.js'
import { withoutRunningHeads } from './headers-footers.js'
import { headingLevels } from './headings.js'
import type {
  Block,
  CodeBlock,
  Line,
  OutlineEntry,
  PageItem,
  PageRemark,
  PdfPage,
  Region,
  Table,
  TableBlock,
  TextBlock,
} from './layout-model.js'
import { CAPTION_PATTERN, endsSentence, isLowerCase } from './line-text.js'
import { piecesOf } from './lines.js'
import { regionsOf, withColumnEdges } from './reading-order.js'
import { renderBlocks } from './render.js'
import { gridsOf, type Stroke, strokesOf } from './ruled-grid.js'
import { takeRuledTables } from './ruled-tables.js'
import { spansOf, withoutDropCaps } from './spans.js'

/** Largest valid coordinate, in points; the largest page has 14,400. Larger numbers are errors, and inexact. */
const FURTHEST = 1_000_000
const LARGEST_SIZE = 10_000

/** The page without runs, rules and links that have an invalid place, no size or no text. */
function sanePage(page: PdfPage): PdfPage {
  return {
    ...page,
    height: isPlace(page.height) ? page.height : 0,
    runs: page.runs.filter(
      (run) =>
        isPlace(run.x, run.y, run.width) &&
        run.width >= 0 &&
        run.fontSize > 0.01 &&
        run.fontSize < LARGEST_SIZE &&
        run.text.trim() !== '',
    ),
    rules: page.rules.filter((rule) => isPlace(rule.x1, rule.x2, rule.y1, rule.y2)),
    links: page.links.filter((link) => isPlace(link.x, link.y, link.width, link.height)),
  }
}

function isPlace(...values: readonly number[]): boolean {
  return values.every((value) => Math.abs(value) <= FURTHEST)
}

interface ReadPage {
  readonly number: number
  readonly height: number
  readonly tables: readonly Table[]
  readonly pieces: readonly Line[]
  /** Horizontal rules that belong to no grid. */
  readonly rules: readonly Stroke[]
}

/**
 * The text of a PDF's pages as GFM Markdown in the order of reading, ending in one line break; '' when the pages hold no
 * text. From the second page on, a line `<!-- page N -->` stands before the first block that begins on page N. `remarks`, in
 * the order of their pages, stand before that line, as comments too.
 */
export function pagesToMarkdown(
  pages: readonly PdfPage[],
  outline: readonly OutlineEntry[],
  remarks: readonly PageRemark[] = [],
): string {
  const read = pages.map((page) => readPage(page))
  const heights = read.map((page) => page.height)
  const pieces = withoutRunningHeads(
    read.map((page) => page.pieces),
    heights,
  )
  const style = documentStyle(pieces)
  const regions = read.flatMap((page, index) => {
    const [openTables, rest] = takeOpenTables(pieces[index] ?? [], page.rules, page.number)
    const items: PageItem[] = [...page.tables, ...openTables, ...rest]
    return regionsOf(items, page.number)
  })
  const blocks = withColumnEdges(regions).flatMap((region) => blocksOf(region, style))
  const headings = headingLevels(blocks, outline, style)
  return renderBlocks(joinContinuations(blocks, headings), remarks, headings, style)
}

function readPage(given: PdfPage): ReadPage {
  const page = sanePage(given)
  const { grids, loose } = gridsOf(strokesOf(page.rules))
  const { tables, rest } = takeRuledTables(spansOf(page), grids, page.number)
  return {
    number: page.number,
    height: page.height,
    tables,
    pieces: piecesOf(withoutDropCaps(rest), page.number),
    rules: loose,
  }
}

const INDENT_EM = 0.8
/** Most notes, tables and captions between the halves of a paragraph. */
const MOST_BETWEEN = 8

/** Joins paragraphs, list items, code and tables that continue in the next column or on the next page. */
function joinContinuations(blocks: readonly Block[], headings: ReadonlyMap<TextBlock, number>): Block[] {
  const isIndented = indentsParagraphs(blocks)
  const joined: Block[] = []
  const regionsWithText = new Set<Region>()
  for (const [index, block] of blocks.entries()) {
    const isText = block.kind === 'text'
    const isFirst = isText ? !regionsWithText.has(block.region) : blocks[index - 1]?.region !== block.region
    if (isText) regionsWithText.add(block.region)
    const target = isFirst ? targetOf(joined, block, headings, isIndented) : undefined
    const at = target === undefined ? -1 : joined.lastIndexOf(target)
    if (target === undefined) joined.push(block)
    else joined[at] = joinedBlock(target, block)
  }
  return joined
}

function joinedBlock(target: Block, block: Block): Block {
  if (target.kind === 'text' && block.kind === 'text') return { ...target, lines: [...target.lines, ...block.lines] }
  if (target.kind === 'code' && block.kind === 'code') return { ...target, lines: [...target.lines, ...block.lines] }
  if (target.kind !== 'table' || block.kind !== 'table') return target
  const rows = isSameRow(target, block) ? block.table.rows.slice(1) : block.table.rows
  return { ...target, table: { ...target.table, rows: [...target.table.rows, ...rows] } }
}

/** The earlier block that `block` continues. */
function targetOf(
  joined: readonly Block[],
  block: Block,
  headings: ReadonlyMap<TextBlock, number>,
  isIndented: boolean,
): Block | undefined {
  const last = joined.at(-1)
  if (last === undefined) return undefined
  if (block.kind === 'code') return last.kind === 'code' && continuesCode(last, block) ? last : undefined
  if (block.kind === 'table') return last.kind === 'table' && continuesTable(last, block) ? last : undefined
  if (block.marker !== undefined || headings.has(block)) return undefined
  for (let index = joined.length - 1; index >= Math.max(0, joined.length - MOST_BETWEEN); index -= 1) {
    const before = joined[index]
    if (before === undefined || (before.kind === 'text' && headings.has(before))) return undefined
    if (before.kind === 'text' && !isAside(before, block)) {
      return continuesText(before, block, isIndented) ? before : undefined
    }
  }
  return undefined
}

/** Whether a block is a footnote or a caption: smaller than the text that continues. */
function isAside(before: TextBlock, block: TextBlock): boolean {
  return sizeClass(sizeOf(before)) < sizeClass(sizeOf(block)) || CAPTION_PATTERN.test(textOf(before))
}

function sizeOf(block: TextBlock): number {
  return block.lines[0]?.size ?? 0
}

function textOf(block: TextBlock): string {
  return block.lines[0]?.text ?? ''
}

function continuesText(before: TextBlock, block: TextBlock, isIndented: boolean): boolean {
  const last = before.lines.at(-1)
  const [first] = block.lines
  if (last === undefined || first === undefined || Math.abs(last.size - first.size) > 0.6) return false
  if (/[\p{L}][-\u00ad]$/u.test(last.text) && isLowerCase(firstCharacter(first.text))) return true
  const em = first.size
  if (before.marker !== undefined && Math.abs(block.indent - before.textIndent) > INDENT_EM * em) return false
  if (hasRoomFor(last, first, before.region)) return false
  if (!endsSentence(last.text)) return isLowerCase(firstCharacter(first.text)) || block.indent < INDENT_EM * em
  return isIndented && block.indent < INDENT_EM * em && before.marker === undefined
}

/** Whether paragraphs of this document begin with an indented line. */
function indentsParagraphs(blocks: readonly Block[]): boolean {
  const paragraphs = blocks.filter(
    (block): block is TextBlock => block.kind === 'text' && block.marker === undefined && block.lines.length > 2,
  )
  const indented = paragraphs.filter((block) => block.indent > INDENT_EM * sizeOf(block))
  return indented.length * 3 > paragraphs.length
}

function continuesCode(last: CodeBlock, block: CodeBlock): boolean {
  return Math.abs((last.lines[0]?.size ?? 0) - (block.lines[0]?.size ?? 0)) < 0.3
}

function continuesTable(last: TableBlock, block: TableBlock): boolean {
  const isSameShape = last.table.rows[0]?.length === block.table.rows[0]?.length
  if (!isSameShape || last.page === block.page) return false
  const isSamePlace = Math.abs(last.table.x1 - block.table.x1) < 4 && Math.abs(last.table.x2 - block.table.x2) < 4
  return isSamePlace || isSameRow(last, block)
}

function isSameRow(a: TableBlock, b: TableBlock): boolean {
  const textsOf = (block: TableBlock): string =>
    (block.table.rows[0] ?? []).map((cell) => cell.map((line) => line.text).join(' ')).join('|')
  return textsOf(a) === textsOf(b)
}
