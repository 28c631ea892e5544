import type { DocumentStyle } from './document-style.js'
import { inlineMarkdown } from './inline.js'
import type { Cell, Table } from './layout-model.js'

/** A GFM table; its first row is the head. */
export function tableMarkdown(table: Table, style: DocumentStyle): string {
  const columns = table.rows.reduce((most, row) => Math.max(most, row.length), 0)
  const rows = table.rows.map((row, index) => rowMarkdown(row, columns, style, index === 0))
  const [head = '', ...body] = rows
  return [head, `|${' --- |'.repeat(columns)}`, ...body].join('\n')
}

function rowMarkdown(row: readonly Cell[], columns: number, style: DocumentStyle, isHead: boolean): string {
  const cells = Array.from({ length: columns }, (_, index) =>
    inlineMarkdown(row[index] ?? [], style, { isPlain: isHead, isLineStart: false }).replace(/(?<!\\)\|/g, '\\|'),
  )
  return `| ${cells.join(' | ')} |`
}
