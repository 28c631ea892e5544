import { blocksOf } from './blocks.js'
import { takeOpenTables } from './borderless-tables.js'
import { type DocumentStyle, documentStyle } from './document-style.js'
import { withoutRunningHeads } from './headers-footers.js'
import { headingLevels } from './headings.js'
import type { Block, Line, OutlineEntry, PageItem, PdfPage, Region, Span, Table, TextBlock } from './layout-model.js'
import { piecesOf } from './lines.js'
import { regionsOf, withColumnEdges } from './reading-order.js'
import { gridsOf, type Stroke, strokesOf } from './ruled-grid.js'
import { takeRuledTables } from './ruled-tables.js'
import { spansOf, withoutDropCaps } from './spans.js'
import { taggedBlocks } from './tagged-blocks.js'
import { taggedHeadings } from './tagged-headings.js'
import { isTelling, type PageElement, type TaggedPage, taggedPage } from './tagged-page.js'

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
  /** What the tags of the page say; undefined where its layout is read instead. */
  readonly tagged: TaggedPage | undefined
  readonly tables: readonly Table[]
  readonly pieces: readonly Line[]
  /** Horizontal rules that belong to no grid. */
  readonly rules: readonly Stroke[]
}

interface DocumentBlocks {
  readonly blocks: readonly Block[]
  readonly headings: ReadonlyMap<TextBlock, number>
  readonly style: DocumentStyle
}

/** The blocks of all pages in the order of reading: by the tags of the file where they are sound, by the layout elsewhere. */
export function documentBlocks(pages: readonly PdfPage[], outline: readonly OutlineEntry[]): DocumentBlocks {
  const read = readPages(pages)
  const pieces = withoutRunningHeads(
    read.map((page) => page.pieces),
    read.map((page) => page.height),
  )
  const style = documentStyle(pieces)
  const regions = read.map((page, index) => (page.tagged === undefined ? pageRegions(page, pieces[index] ?? []) : []))
  const edged = withColumnEdges(regions.flat())
  const blocks: Block[] = []
  const byTags = new Map<TextBlock, number>()
  let next = 0
  for (const [index, page] of read.entries()) {
    const own = edged.slice(next, next + (regions[index]?.length ?? 0))
    next += own.length
    const tagged = page.tagged && taggedBlocks(keptLines(page.tagged, pieces[index] ?? []), page.number, style)
    for (const block of tagged?.blocks ?? own.flatMap((region) => blocksOf(region, style))) blocks.push(block)
    for (const [block, level] of tagged?.headings ?? []) byTags.set(block, level)
  }
  const headings = taggedHeadings(byTags, headingLevels(blocks, outline, style), style)
  return { blocks, headings, style }
}

/** Tags are followed where those of some page say more than the order of the text, such as what is a heading. */
function readPages(pages: readonly PdfPage[]): ReadPage[] {
  const sheets = pages.map((page) => sheetOf(page))
  const tagged = sheets.flatMap((sheet) => sheet.tagged ?? [])
  const isTold = tagged.some(isTelling)
  const hasTables = tagged.some(({ elements }) => elements.some(({ kind }) => kind === 'table'))
  return sheets.map((sheet) => {
    const isWhole = isTold && (hasTables || sheet.tables.length === 0)
    return readPage(isWhole ? sheet : { ...sheet, tagged: undefined })
  })
}

interface Sheet extends Omit<ReadPage, 'pieces'> {
  /** The text outside of ruled tables. */
  readonly rest: readonly Span[]
}

function sheetOf(given: PdfPage): Sheet {
  const page = sanePage(given)
  const spans = spansOf(page)
  const { grids, loose } = gridsOf(strokesOf(page.rules))
  const { tables, rest } = takeRuledTables(spans, grids, page.number)
  const tagged = page.structure && taggedPage(page, withoutDropCaps(spans))
  return { number: page.number, height: page.height, tagged, tables, rest, rules: loose }
}

function readPage({ rest, ...sheet }: Sheet): ReadPage {
  const { tagged, number } = sheet
  return { ...sheet, pieces: tagged === undefined ? piecesOf(withoutDropCaps(rest), number) : linesOf(tagged) }
}

/** The lines of a tagged page outside of tables, from the top. */
function linesOf({ elements, rest }: TaggedPage): Line[] {
  const lines = elements.flatMap((element) => (element.kind === 'text' ? element.lines : []))
  return [...lines, ...rest].sort((a, b) => a.y - b.y)
}

/** The page without the lines that `pieces` lacks. */
function keptLines({ elements, rest }: TaggedPage, pieces: readonly Line[]): TaggedPage {
  const kept = new Set(pieces)
  const isKept = (line: Line): boolean => kept.has(line)
  return {
    elements: elements.flatMap((element): PageElement[] => {
      if (element.kind === 'table') return [element]
      const lines = element.lines.filter(isKept)
      return lines.length === 0 ? [] : [{ ...element, lines }]
    }),
    rest: rest.filter(isKept),
  }
}

function pageRegions(page: ReadPage, pieces: readonly Line[]): Region[] {
  const [openTables, rest] = takeOpenTables(pieces, page.rules, page.number)
  const items: PageItem[] = [...page.tables, ...openTables, ...rest]
  return regionsOf(items, page.number)
}
