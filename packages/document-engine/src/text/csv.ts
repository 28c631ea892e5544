import Papa from 'papaparse'
import { cellText, type MarkdownCell, markdownTable } from '../markdown/table-writer.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  extensionOf,
  mediaTypeOf,
  NO_METADATA,
} from '../model/document.js'
import { plainText } from './read-text.js'

/** Most stray quotes of a value: the parser may scan the whole value again for each. */
const MOST_STRAY_QUOTES = 100

/**
 * Whether quotes delimit values: each opening quote is closed, and no value has more than a hundred stray quotes. Linear
 * time; rows end with `\n`.
 */
function areQuotesSound(text: string, delimiter: string): boolean {
  let at = 0
  while (at < text.length) {
    const end = text[at] === '"' ? quotedEnd(text, at, delimiter) : plainEnd(text, at, delimiter)
    if (end === undefined) return false
    at = end + 1
  }
  return true
}

const isBorder = (character: string | undefined, delimiter: string): boolean =>
  character === undefined || character === delimiter || character === '\n'

/** End of the value that begins at `at`. */
function plainEnd(text: string, at: number, delimiter: string): number {
  let end = at
  while (!isBorder(text[end], delimiter)) end += 1
  return end
}

/** End of the value whose opening quote is at `at`; undefined when it is not closed properly. */
function quotedEnd(text: string, at: number, delimiter: string): number | undefined {
  let quote = at
  for (let strayQuotes = 0; strayQuotes <= MOST_STRAY_QUOTES;) {
    quote = text.indexOf('"', quote + 1)
    if (quote === -1) return undefined
    if (text[quote + 1] === '"') {
      quote += 1
      continue
    }
    // The parser ignores blanks behind a closing quote.
    let end = quote + 1
    while (!isBorder(text[end], delimiter) && text.charAt(end).trim() === '') end += 1
    if (isBorder(text[end], delimiter)) return end
    strayQuotes += 1
  }
  return undefined
}

const MOST_CELLS = 1_000_000
/** Length of the sample from which the delimiter is guessed. */
const GUESSED_CHARACTERS = 32_768
const DELIMITERS = [',', ';', '\t', '|']

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
  const delimiter = named?.[1] ?? named?.[2] ?? (isTabbed(input) ? '\t' : guessedDelimiter(body))
  const markdown = markdownTable(rowsOf(body, delimiter))
  return { kind: 'csv', metadata: NO_METADATA, html: '', markdown: markdown === '' ? '' : `${markdown}\n`, pages: 1 }
}

/** Guesses from whole rows if the sample has one: a partial row would count against the right delimiter. */
function guessedDelimiter(text: string): string {
  const beginning = text.slice(0, GUESSED_CHARACTERS)
  const rowsEnd = beginning.length < text.length ? beginning.lastIndexOf('\n') + 1 : 0
  const rows = rowsEnd === 0 ? beginning : beginning.slice(0, rowsEnd)
  // An empty row behind the last line end would count against it as well.
  return Papa.parse(rows, { delimitersToGuess: DELIMITERS, skipEmptyLines: true, preview: 1 }).meta.delimiter
}

/** A quote without its partner would join all rows after it: then quotes are ordinary characters. */
function rowsOf(text: string, delimiter: string): MarkdownCell[][] {
  const quoteChar = areQuotesSound(text, delimiter) ? '"' : '\0'
  const rows: MarkdownCell[][] = []
  let cells = 0
  Papa.parse<string[]>(text, {
    delimiter,
    quoteChar,
    skipEmptyLines: true,
    step: ({ data }) => {
      cells += data.length
      if (cells > MOST_CELLS) throw new EngineFault('too_large', `The table has more than ${MOST_CELLS} cells.`)
      rows.push(tableRow(data))
    },
  })
  return rows
}

function tableRow(values: readonly string[]): MarkdownCell[] {
  const cells = values.map((value, column) => ({ column, markdown: cellText(value) }))
  return cells.filter(({ markdown }) => markdown !== '')
}

function isTabbed({ contentType, name }: EngineInput): boolean {
  return mediaTypeOf(contentType) === 'text/tab-separated-values' || extensionOf(name) === 'tsv'
}
