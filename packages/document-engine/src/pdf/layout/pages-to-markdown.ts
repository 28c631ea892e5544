import { blocksOf } from './blocks.js'
import { takeOpenTables } from './borderless-tables.js'
import { joinContinuations } from './continuations.js'
import { documentStyle } from './document-style.js'
import { withoutRunningHeads } from './headers-footers.js'
import { headingLevels } from './headings.js'
import type { Line, OutlineEntry, PageItem, PageRemark, PdfPage, Table } from './layout-model.js'
import { piecesOf } from './lines.js'
import { regionsOf, withColumnEdges } from './reading-order.js'
import { renderBlocks } from './render.js'
import { gridsOf, type Stroke, strokesOf } from './ruled-grid.js'
import { takeRuledTables } from './ruled-tables.js'
import { spansOf, withoutDropCaps } from './spans.js'

/** In points; the largest page of the format has 14,400. Beyond it numbers are broken, and lose their decimals. */
const FURTHEST = 1_000_000
const LARGEST_SIZE = 10_000

/** The page without runs, rules and links that stand nowhere, have no size or no text. */
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
  /** Horizontal rules of no grid. */
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
