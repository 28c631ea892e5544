import { blocksOf } from './blocks.js'
import { joinContinuations } from './continuations.js'
import { documentStyle } from './document-style.js'
import { withoutDropCaps } from './drop-caps.js'
import { withoutRunningHeads } from './headers-footers.js'
import { headingLevels } from './headings.js'
import type { Line, PageItem, Table } from './layout-model.js'
import { piecesOf } from './lines.js'
import { takeOpenTables } from './open-tables.js'
import type { OutlineEntry, PageRemark, PdfPage } from './pdf-page.js'
import { withColumnEdges } from './region-edges.js'
import { regionsOf } from './regions.js'
import { renderBlocks } from './render.js'
import { type Stroke, strokesOf } from './rule-geometry.js'
import { gridsOf } from './ruled-grid.js'
import { takeRuledTables } from './ruled-tables.js'
import { sanePage } from './sane-page.js'
import { spansOf } from './spans.js'

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
