/** Each stray quote of a value may make the parser look through all of it again. */
const MOST_STRAY_QUOTES = 100

/**
 * Whether quotes can be what keeps values together: each one that opens a value is closed, and no value has more than a
 * hundred quotes that neither close it nor stand for a quote. Linear; rows end with `\n`.
 */
export function areQuotesSound(text: string, delimiter: string): boolean {
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

/** Where the value ends that begins at `at`. */
function plainEnd(text: string, at: number, delimiter: string): number {
  let end = at
  while (!isBorder(text[end], delimiter)) end += 1
  return end
}

/** Where the value ends whose opening quote stands at `at`; undefined when it is not sound. */
function quotedEnd(text: string, at: number, delimiter: string): number | undefined {
  let quote = at
  for (let strayQuotes = 0; strayQuotes <= MOST_STRAY_QUOTES;) {
    quote = text.indexOf('"', quote + 1)
    if (quote === -1) return undefined
    if (text[quote + 1] === '"') {
      quote += 1
      continue
    }
    // The parser takes blanks behind a closing quote for nothing.
    let end = quote + 1
    while (!isBorder(text[end], delimiter) && text.charAt(end).trim() === '') end += 1
    if (isBorder(text[end], delimiter)) return end
    strayQuotes += 1
  }
  return undefined
}
