import type { PlacedText } from './text-place.js'

/** Accents that a typesetter draws beside the letter, and what they are upon it. */
const COMBINING: ReadonlyMap<string, string> = new Map([
  ['\u00A8', '\u0308'],
  ['\u00B4', '\u0301'],
  ['\u02C6', '\u0302'],
  ['\u02DC', '\u0303'],
  ['\u02C7', '\u030C'],
  ['\u02D8', '\u0306'],
  ['\u02D9', '\u0307'],
  ['\u02DA', '\u030A'],
  ['\u02DD', '\u030B'],
  ['\u00AF', '\u0304'],
  ['\u00B8', '\u0327'],
])
const WITHOUT_DOT: ReadonlyMap<string, string> = new Map([
  ['\u0131', 'i'],
  ['\u0237', 'j'],
])

const ACCENTS = [...COMBINING.keys()].join('')
const ACCENT_AND_LETTER = new RegExp(`([${ACCENTS}])(\\p{L})`, 'gu')
const ENDS_WITH_ACCENT = new RegExp(`[${ACCENTS}]$`, 'u')
const STARTS_WITH_LETTER = /^\p{L}/u
/** In font sizes; how much higher the accent of a capital stands. */
const MAX_RISE = 0.4

/** TeX draws an accent and then the letter under it; the two become one letter where there is such a letter. */
export function withAccents(text: string): string {
  return text.replace(ACCENT_AND_LETTER, (pair, accent: string, letter: string) => {
    const joined = `${WITHOUT_DOT.get(letter) ?? letter}${COMBINING.get(accent) ?? ''}`.normalize('NFC')
    return joined.length === 1 ? joined : pair
  })
}

/** Puts a piece that ends with an accent together with the next, whose first letter stands under it. */
export function joinedAtAccents(texts: readonly PlacedText[]): PlacedText[] {
  const joined: PlacedText[] = []
  for (const text of texts) {
    const last = joined.at(-1)
    if (last !== undefined && isAccentOf(last, text)) {
      const length = Math.max(last.length, text.x + text.length - last.x)
      const y = last.text.length === 1 ? text.y : last.y
      joined[joined.length - 1] = { ...text, text: withAccents(last.text + text.text), x: last.x, y, length }
    } else joined.push(text)
  }
  return joined
}

function isAccentOf(last: PlacedText, text: PlacedText): boolean {
  if (!ENDS_WITH_ACCENT.test(last.text) || !STARTS_WITH_LETTER.test(text.text) || text.turn !== last.turn) return false
  const end = last.x + last.length
  return (
    Math.abs(text.y - last.y) <= MAX_RISE * text.fontSize &&
    text.x <= end + 0.05 * text.fontSize &&
    text.x >= end - text.fontSize
  )
}
