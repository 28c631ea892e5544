import { firstCharacter } from '../../markdown/escape-markdown.js'
import { hasRoomFor } from './blocks.js'
import { sizeClass } from './document-style.js'
import type {
  Block,
  CodeBlock,
  OutlineEntry,
  PageRemark,
  PdfPage,
  Region,
  TableBlock,
  TextBlock,
} from './layout-model.js'
import { CAPTION_PATTERN, endsSentence, isLowerCase } from './line-text.js'
import { documentBlocks } from './page-blocks.js'
import { renderBlocks } from './render.js'

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
  const { blocks, headings, style } = documentBlocks(pages, outline)
  return renderBlocks(joinContinuations(blocks, headings), remarks, headings, style)
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
  if (block.table.isContinued === true) return true
  const isSamePlace = Math.abs(last.table.x1 - block.table.x1) < 4 && Math.abs(last.table.x2 - block.table.x2) < 4
  return isSamePlace || isSameRow(last, block)
}

function isSameRow(a: TableBlock, b: TableBlock): boolean {
  const textsOf = (block: TableBlock): string =>
    (block.table.rows[0] ?? []).map((cell) => cell.map((line) => line.text).join(' ')).join('|')
  return textsOf(a) === textsOf(b)
}
