import Papa from 'papaparse'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput, NO_METADATA } from '../engine-contract.js'
import { cellText, markdownTable, type TableCell } from './markdown-table.js'
import { plainText } from './plain-text.js'
import { extensionOf, mimeType } from './text-kind.js'

const MOST_CELLS = 1_000_000

/**
 * Rows of separated values as one table, the first row its header.
 *
 * @throws EngineFault `too_large`
 */
export function readCsv(input: EngineInput, _limits: EngineLimits): EngineOutput {
  const text = plainText(input)
  // Excel writes, and reads, a first line that names the delimiter.
  const named = /^(?:"sep=(.)"|sep=(.))\n/i.exec(text)
  const body = text.slice(named?.[0].length ?? 0)
  const delimiter = named?.[1] ?? named?.[2] ?? (isTabbed(input) ? '\t' : '')
  const markdown = markdownTable(rowsOf(body, delimiter))
  return { kind: 'csv', metadata: NO_METADATA, html: '', markdown: markdown === '' ? '' : `${markdown}\n`, pages: 1 }
}

/** A quote that nobody closes would swallow all rows behind it: then quotes are characters like others. */
function rowsOf(text: string, delimiter: string): TableCell[][] {
  return parsedRows(text, delimiter, '"') ?? parsedRows(text, delimiter, '\0') ?? []
}

/** Undefined when a quote is still open at the end. */
function parsedRows(text: string, delimiter: string, quoteChar: string): TableCell[][] | undefined {
  const rows: TableCell[][] = []
  let cells = 0
  let openQuotes = 0
  Papa.parse<string[]>(text, {
    delimiter,
    quoteChar,
    delimitersToGuess: [',', ';', '\t', '|'],
    // The empty row behind the last line end would count against the right delimiter.
    skipEmptyLines: true,
    step: ({ data, errors }) => {
      openQuotes += errors.filter(({ code }) => code === 'MissingQuotes').length
      cells += data.length
      if (cells > MOST_CELLS) throw new EngineFault('too_large', `The table has more than ${MOST_CELLS} cells.`)
      if (openQuotes === 0) rows.push(tableRow(data))
    },
  })
  return openQuotes === 0 ? rows : undefined
}

function tableRow(values: readonly string[]): TableCell[] {
  const cells = values.map((value, column) => ({ column, markdown: cellText(value) }))
  return cells.filter(({ markdown }) => markdown !== '')
}

function isTabbed({ contentType, name }: EngineInput): boolean {
  return mimeType(contentType) === 'text/tab-separated-values' || extensionOf(name) === 'tsv'
}
