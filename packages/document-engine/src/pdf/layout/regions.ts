import { findAlignedTables } from './borderless-tables.js'
import { baselines } from './cell-lines.js'
import type { Line, PageItem, Region } from './layout-model.js'
import { mergeLines } from './line-maker.js'
import { readingOrder } from './reading-order.js'

/** Stretches of columns in the order of reading, with whole lines and all tables. */
export function regionsOf(items: readonly PageItem[], page: number): Region[] {
  return readingOrder(items).map((column) => regionOf(column, page))
}

function regionOf(column: readonly PageItem[], page: number): Region {
  const tables = column.filter((item) => item.kind === 'table')
  const rows = baselines(column.filter((item) => item.kind === 'line'))
  const items: PageItem[] = [...tables]
  for (const stretch of stretchesBetween(rows, tables)) {
    for (const found of findAlignedTables(stretch, page)) {
      items.push('kind' in found ? found : mergeLines(found))
    }
  }
  items.sort((a, b) => a.top - b.top)
  const lines = items.filter((item) => item.kind === 'line')
  return { page, items, ...edgesOf(lines.length === 0 ? items : lines) }
}

/** Aligned tables do not run over tables with rules. */
function stretchesBetween(rows: readonly Line[][], tables: readonly PageItem[]): Line[][][] {
  const stops = tables.map((table) => table.top).sort((a, b) => a - b)
  const stretches: Line[][][] = [[]]
  let next = 0
  for (const row of rows) {
    const y = row[0]?.y ?? 0
    if (y > (stops[next] ?? Infinity)) {
      stretches.push([])
      while (y > (stops[next] ?? Infinity)) next += 1
    }
    stretches.at(-1)?.push(row)
  }
  return stretches
}

function edgesOf(items: readonly PageItem[]): { left: number; right: number } {
  const lefts = items.map((item) => item.x1).sort((a, b) => a - b)
  const rights = items.map((item) => item.x2).sort((a, b) => a - b)
  return { left: lefts[0] ?? 0, right: rights.at(-1) ?? 0 }
}
