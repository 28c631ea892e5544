import type { Point } from './geometry.js'
import type { PlacedText } from './text-place.js'

const SOFT_HYPHEN = '\u00AD'
/** In font sizes; how far from the end of its word the hyphen may stand, and how wide it is about. */
const MAX_GAP = 0.35
const WIDTH = 0.33
/** No line ends in more columns; the search along a line stays short. */
const MAX_HYPHENS_OF_LEVEL = 200

/**
 * Gives words at the end of a line their hyphen back: pdf.js leaves a glyph out of the text when its font calls it a soft
 * hyphen, though the page shows it.
 *
 * @param hyphens where such glyphs begin, on the page as shown
 */
export function withSoftHyphens(texts: readonly PlacedText[], hyphens: readonly Point[]): PlacedText[] {
  const byLevel = new Map<number, Point[]>()
  for (const hyphen of hyphens) {
    const level = Math.round(hyphen[1])
    const others = byLevel.get(level) ?? []
    if (others.length < MAX_HYPHENS_OF_LEVEL) others.push(hyphen)
    byLevel.set(level, others)
  }
  return texts.map((text) => {
    const near = [-1, 0, 1].flatMap((shift) => byLevel.get(Math.round(text.y) + shift) ?? [])
    return text.turn === 0 && near.some((hyphen) => isAtEnd(text, hyphen)) ? hyphenated(text) : text
  })
}

function isAtEnd({ x, y, length, fontSize }: PlacedText, [hyphenX, hyphenY]: Point): boolean {
  return Math.abs(x + length - hyphenX) <= MAX_GAP * fontSize && Math.abs(y - hyphenY) <= MAX_GAP * fontSize
}

function hyphenated(text: PlacedText): PlacedText {
  return { ...text, text: text.text + SOFT_HYPHEN, length: text.length + WIDTH * text.fontSize }
}
