import type { PlacedText } from './text-place.js'

/** In font sizes; copies lie nearer, neighbours of one letter do not. */
const MAX_OFFSET = 0.15
const MAX_OFFSET_OF_WORDS = 0.3
const WORD_LENGTH = 4
/** Characters that part texts before they are compared in full. */
const KEY_LENGTH = 8
/** In font sizes; a copy beside the original, not upon it, is drawn to make it bold. */
const MIN_BOLD_OFFSET = 0.005
const MAX_BOLD_OFFSET = 0.08

/** Text drawn again at nearly the same place, for boldness or a shadow, counts once. Linear but for crowded spots. */
export function withoutCopies(texts: readonly PlacedText[]): PlacedText[] {
  const originals = new Map<string, SingleText[]>()
  const singles: SingleText[] = []
  for (const placed of texts) {
    const original = keysAround(placed)
      .flatMap((key) => originals.get(key) ?? [])
      .find((single) => isCopy(placed, single.placed))
    if (original !== undefined) {
      original.isDoubled ||= isBesides(placed, original.placed)
      continue
    }
    const single = { placed, isDoubled: false }
    singles.push(single)
    const key = keyAt(placed, 0, 0)
    const near = originals.get(key)
    if (near === undefined) originals.set(key, [single])
    else near.push(single)
  }
  return singles.map(({ placed, isDoubled }) => (isDoubled ? { ...placed, isDrawnBold: true } : placed))
}

interface SingleText {
  readonly placed: PlacedText
  isDoubled: boolean
}

function keysAround(placed: PlacedText): string[] {
  return [-1, 0, 1].flatMap((column) => [-1, 0, 1].map((row) => keyAt(placed, column, row)))
}

function keyAt({ text, x, y, fontSize }: PlacedText, column: number, row: number): string {
  return `${Math.round(x / fontSize) + column} ${Math.round(y / fontSize) + row} ${text.slice(0, KEY_LENGTH)}`
}

function isCopy(text: PlacedText, original: PlacedText): boolean {
  if (text.text !== original.text) return false
  const limit = (text.text.length < WORD_LENGTH ? MAX_OFFSET : MAX_OFFSET_OF_WORDS) * text.fontSize
  return Math.abs(text.x - original.x) <= limit && Math.abs(text.y - original.y) <= limit
}

function isBesides(text: PlacedText, original: PlacedText): boolean {
  const offset = Math.hypot(text.x - original.x, text.y - original.y) / text.fontSize
  return offset >= MIN_BOLD_OFFSET && offset <= MAX_BOLD_OFFSET
}
