import type { Cell, Line, Span } from './layout-model.js'
import { mergeLines } from './line-maker.js'
import { piecesOf } from './lines.js'

/** Spans of one cell as its lines, from the top. */
export function cellLines(spans: readonly Span[], page: number): Cell {
  return baselines(piecesOf(spans, page)).map((pieces) => mergeLines(pieces))
}

/** Pieces of one column by baseline, from the top; those of a baseline from the left. */
export function baselines(pieces: readonly Line[]): Line[][] {
  const rows: Line[][] = []
  let row: Line[] = []
  for (const piece of [...pieces].sort((a, b) => a.y - b.y)) {
    const [first] = row
    if (first !== undefined && piece.y - first.y > Math.min(piece.size, first.size) * 0.35) {
      rows.push(row)
      row = []
    }
    row.push(piece)
  }
  if (row.length > 0) rows.push(row)
  return rows.map((pieces) => pieces.sort((a, b) => a.x1 - b.x1))
}
