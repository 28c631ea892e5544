import { extentOf, isFilled, isProse } from './borderless-tables.js'
import { baselines } from './cell-lines.js'
import { cellPieces, LEAST_CELL_GAP_EM } from './cell-pieces.js'
import type { Cell, Line, Table } from './layout-model.js'
import { groupRows } from './row-grouping.js'
import { RULE_TOLERANCE, type Stroke } from './rule-geometry.js'
import { cellsOfRow, type Column, findColumns } from './table-cells.js'

const MOST_HEAD_LINES = 4

/** Tables between horizontal rules alone: three as in books, or one below each row. */
export function takeOpenTables(pieces: readonly Line[], rules: readonly Stroke[], page: number): [Table[], Line[]] {
  const tables: Table[] = []
  let rest = [...pieces]
  for (const stack of stacksOf(rules)) {
    for (const bands of tabularBands(rest, stack)) {
      const table = tableOfBands(bands, page)
      if (table === undefined) continue
      tables.push(table)
      const taken = new Set(bands.flatMap((band) => band.pieces))
      rest = rest.filter((piece) => !taken.has(piece))
    }
  }
  return [tables, rest]
}

interface Band {
  readonly top: number
  readonly bottom: number
  readonly pieces: readonly Line[]
  readonly rows: readonly (readonly Line[])[]
}

/** Rules of the same extent, from the top. */
function stacksOf(rules: readonly Stroke[]): Stroke[][] {
  const stacks = new Map<string, Stroke[]>()
  for (const rule of [...rules].sort((a, b) => a.at - b.at)) {
    const key = `${String(Math.round(rule.from / 5))} ${String(Math.round(rule.to / 5))}`
    const stack = stacks.get(key)
    if (stack === undefined) stacks.set(key, [rule])
    else stack.push(rule)
  }
  return [...stacks.values()].filter((stack) => stack.length > 1 && stack.length < 300).slice(0, 50)
}

/** Neighbouring bands between rules that hold cells, not prose. */
function tabularBands(pieces: readonly Line[], stack: readonly Stroke[]): Band[][] {
  const [edge] = stack
  if (edge === undefined) return []
  const within = pieces.filter((piece) => piece.x1 > edge.from - 6 && piece.x2 < edge.to + 6)
  const groups: Band[][] = [[]]
  for (const [index, rule] of stack.slice(1).entries()) {
    const top = stack[index]?.at ?? rule.at
    const inside = within.filter((piece) => piece.y > top && piece.y < rule.at + RULE_TOLERANCE)
    const band = { top, bottom: rule.at, pieces: inside, rows: baselines(inside).map((row) => cellPieces(row)) }
    if (inside.length === 0 && rule.at - top < 8) continue
    if (isTabular(band)) groups.at(-1)?.push(band)
    else groups.push([])
  }
  return groups.filter((group) => group.length > 0)
}

function isTabular({ rows }: Band): boolean {
  const multiple = rows.filter((row) => row.length > 1).length
  const code = rows.filter((row) => row.every((piece) => piece.isFixedPitch)).length
  return multiple > 0 && multiple >= rows.length * 0.34 && code * 2 <= rows.length && !isProse(rows)
}

function tableOfBands(bands: readonly Band[], page: number): Table | undefined {
  const rows = bands.flatMap((band) => band.rows)
  const size = rows[0]?.[0]?.size ?? 10
  const columns = findColumns(rows, size * LEAST_CELL_GAP_EM * 0.9)
  if (columns.length < 2 || isCrossed(rows, columns)) return undefined
  const cells = rowsOfBands(bands, columns)
  if (cells.length < 2 || !isFilled(cells)) return undefined
  return {
    kind: 'table',
    page,
    rows: cells,
    ...extentOf(rows.flat()),
    top: bands[0]?.top ?? 0,
    bottom: bands.at(-1)?.bottom ?? 0,
  }
}

/** Lines of prose run over the columns that a few aligned ones among them would make. */
function isCrossed(rows: readonly (readonly Line[])[], columns: readonly Column[]): boolean {
  const crossing = rows.filter(([first, second]) => {
    if (first === undefined || second !== undefined) return false
    return columns.filter((column) => column.x1 < first.x2 && column.x2 > first.x1).length > 1
  })
  return crossing.length > rows.length * 0.2
}

function rowsOfBands(bands: readonly Band[], columns: readonly Column[]): Cell[][] {
  const lineCount = bands.reduce((sum, band) => sum + band.rows.length, 0)
  const isRulePerRow = bands.length >= 3 && bands.length * 2 >= lineCount
  return bands.flatMap((band, index) => {
    const lines = band.rows.map((row) => ({
      y: row[0]?.y ?? 0,
      size: row[0]?.size ?? 10,
      cells: cellsOfRow(row, columns),
    }))
    const isHead = index === 0 && bands.length > 1 && lines.length <= MOST_HEAD_LINES
    if (!isHead && !isRulePerRow) return groupRows(lines)
    return [columns.map((_, column) => lines.flatMap((line) => line.cells[column] ?? []))]
  })
}
