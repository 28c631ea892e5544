import type { Cell, Line, Span, Table } from './layout-model.js'
import { type Grid, indexAbove, isDrawn, RULE_TOLERANCE } from './ruled-grid.js'
import { cellLines } from './table-cells.js'

const LEAST_FILLED_SHARE = 0.3
/** Most grids of a page; a drawing may have thousands. */
const MOST_TABLES = 100

/** The tables of a page, and its text outside of them. */
interface TakenTables {
  readonly tables: Table[]
  readonly rest: Span[]
}

/** Reads tables drawn as grids of rules. Text of a spanning cell is put into its first cell. */
export function takeRuledTables(spans: readonly Span[], grids: readonly Grid[], page: number): TakenTables {
  const tables: Table[] = []
  let rest = [...spans]
  for (const grid of [...grids].sort((a, b) => areaOf(a) - areaOf(b)).slice(-MOST_TABLES)) {
    const inside = rest.filter((span) => isInside(span, grid))
    const table = inside.length === 0 ? undefined : tableOf(grid, inside, page)
    if (table === undefined) continue
    tables.push(table)
    const taken = new Set(inside)
    rest = rest.filter((span) => !taken.has(span))
  }
  return { tables, rest }
}

function areaOf(grid: Grid): number {
  return ((grid.xs.at(-1) ?? 0) - (grid.xs[0] ?? 0)) * ((grid.ys.at(-1) ?? 0) - (grid.ys[0] ?? 0))
}

function isInside(span: Span, grid: Grid): boolean {
  const x = (span.x1 + span.x2) / 2
  const y = span.y - span.size * 0.3
  return x > (grid.xs[0] ?? 0) && x < (grid.xs.at(-1) ?? 0) && y > (grid.ys[0] ?? 0) && y < (grid.ys.at(-1) ?? 0)
}

function tableOf(grid: Grid, spans: readonly Span[], page: number): Table | undefined {
  const owners = cellOwners(grid)
  const columns = grid.xs.length - 1
  const texts = new Map<number, Span[]>()
  for (const span of spans.flatMap((whole) => cutAtRules(whole, grid))) {
    const row = indexAbove(grid.ys, span.y - span.size * 0.3) - 1
    const column = indexAbove(grid.xs, (span.x1 + span.x2) / 2) - 1
    const owner = owners[row * columns + column] ?? 0
    const known = texts.get(owner)
    if (known === undefined) texts.set(owner, [span])
    else known.push(span)
  }
  const ownerCount = new Set(owners).size
  if (texts.size < 3 || texts.size < ownerCount * LEAST_FILLED_SHARE) return undefined
  const rows = grid.ys
    .slice(1)
    .map((_, row) =>
      Array.from({ length: columns }, (_cell, column): Cell =>
        cellLines(texts.get(row * columns + column) ?? [], page),
      ),
    )
  const filled = withoutEmptyColumns(rows.flatMap((row) => splitRow(row)).filter((row) => row.some(isFilled)))
  if (filled.length < 2 || (filled[0]?.length ?? 0) < 2) return undefined
  const [x1 = 0] = grid.xs
  const [top = 0] = grid.ys
  return { kind: 'table', page, rows: filled, x1, x2: grid.xs.at(-1) ?? x1, top, bottom: grid.ys.at(-1) ?? top }
}

function isFilled(cell: Cell): boolean {
  return cell.length > 0
}

function withoutEmptyColumns(rows: Cell[][]): Cell[][] {
  const isUsed = (rows[0] ?? []).map((_, column) => rows.some((row) => isFilled(row[column] ?? [])))
  return rows.map((row) => row.filter((_, column) => isUsed[column] === true))
}

/** For each cell, row by row, the index of the first cell that no rule separates from it. */
function cellOwners(grid: Grid): number[] {
  const columns = grid.xs.length - 1
  const owners: number[] = []
  for (let row = 0; row < grid.ys.length - 1; row += 1) {
    const [top = 0, bottom = 0] = grid.ys.slice(row, row + 2)
    for (let column = 0; column < columns; column += 1) {
      const [left = 0, right = 0] = grid.xs.slice(column, column + 2)
      const index = row * columns + column
      const above = owners[index - columns]
      const before = owners[index - 1]
      if (row > 0 && above !== undefined && !isDrawn(grid.horizontalAt[row], left, right)) owners.push(above)
      else if (column > 0 && before !== undefined && !isDrawn(grid.verticalAt[column], top, bottom)) owners.push(before)
      else owners.push(index)
    }
  }
  return owners
}

/** Cuts a piece of text over several cells at the blanks next to their rules. */
function cutAtRules(span: Span, grid: Grid): Span[] {
  const x = grid.xs.find((at) => at > span.x1 + RULE_TOLERANCE * 2 && at < span.x2 - RULE_TOLERANCE * 2)
  if (x === undefined) return [span]
  const perCharacter = (span.x2 - span.x1) / span.text.length
  const at = Math.round((x - span.x1) / perCharacter)
  const blank = [at, at - 1, at + 1, at - 2, at + 2].find((index) => span.text[index] === ' ')
  if (blank === undefined) return [span]
  const middle = span.x1 + blank * perCharacter
  const head = { ...span, text: span.text.slice(0, blank), x2: middle }
  const tail = { ...span, text: span.text.slice(blank + 1), x1: middle + perCharacter }
  return [head, ...cutAtRules(tail, grid)].filter((part) => part.text.trim() !== '')
}

/** Splits rows without rules between them: every filled cell has lines on the same baselines, three or more. */
function splitRow(row: readonly Cell[]): Cell[][] {
  const filled = row.filter(isFilled)
  const [first] = filled
  const count = first?.length ?? 0
  const isAligned = filled.every(
    (cell) => cell.length === count && cell.every((line, index) => isOneBaseline(line, first?.[index])),
  )
  if (first === undefined || filled.length < 2 || count < 3 || !isAligned) return [[...row]]
  return first.map((_, index) => row.map((cell) => cell.slice(index, index + 1)))
}

function isOneBaseline(a: Line, b: Line | undefined): boolean {
  return b !== undefined && Math.abs(a.y - b.y) < a.size * 0.3
}
