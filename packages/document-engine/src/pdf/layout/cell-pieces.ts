import type { Line, Span } from './layout-model.js'
import { gapBetween, makeLine } from './line-maker.js'

/** In em: cells stand at least so far apart, two cell margins of a narrow table. */
export const LEAST_CELL_GAP_EM = 0.5
/** Characters of fixed pitch are 0.6 em wide, and so are their blanks. */
const LEAST_FIXED_PITCH_GAP_EM = 1.3
/** A line set flush on both sides has blanks of one width; cells rarely do, unless they stand well apart. */
const LEAST_JUSTIFIED_GAPS = 4
const MOST_UNEVENNESS = 1.35
const MOST_JUSTIFIED_GAP_EM = 1.2

/** The pieces of one baseline cut wherever a column of a table might end, from the left. */
export function cellPieces(row: readonly Line[]): Line[] {
  return row.flatMap((piece) => cutPiece(piece)).sort((a, b) => a.x1 - b.x1)
}

function cutPiece(piece: Line): Line[] {
  const spans = [...piece.spans].sort((a, b) => a.x1 - b.x1)
  const gaps = spans.slice(1).map((span, index) => gapBefore(spans[index], span))
  const least = piece.size * (piece.isFixedPitch ? LEAST_FIXED_PITCH_GAP_EM : LEAST_CELL_GAP_EM)
  if (!gaps.some((gap) => gap >= least) || isJustified(gaps, piece.size)) return [piece]
  const groups: Span[][] = []
  for (const [index, span] of spans.entries()) {
    const isCut = index === 0 || (gaps[index - 1] ?? 0) >= least
    if (isCut) groups.push([span])
    else groups.at(-1)?.push(span)
  }
  return groups.map((group) => makeLine(group, piece.page))
}

function gapBefore(previous: Span | undefined, span: Span): number {
  return previous === undefined ? 0 : gapBetween(previous, span)
}

function isJustified(gaps: readonly number[], size: number): boolean {
  const blanks = gaps.filter((gap) => gap > size * 0.15)
  const least = blanks.reduce((min, gap) => Math.min(min, gap), Infinity)
  const most = blanks.reduce((max, gap) => Math.max(max, gap), 0)
  return blanks.length >= LEAST_JUSTIFIED_GAPS && most < size * MOST_JUSTIFIED_GAP_EM && most <= least * MOST_UNEVENNESS
}
