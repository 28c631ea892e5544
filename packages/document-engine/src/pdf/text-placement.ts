import { type Affine, compose } from './geometry.js'
import { moved, uprightMatrix } from './placed-text.js'
import type { PlacedText, Turn } from './text-place.js'

/** Text across the rest of the page stays when it is that much, in characters and as a part of all; less is a stamp. */
const MIN_SIDE_CHARACTERS = 200
const MIN_SIDE_PART = 0.15
/** From the middle of a column of vertical writing to its baseline, in font sizes. */
const VERTICAL_BASELINE = 0.35

interface TurnedPage {
  readonly texts: readonly PlacedText[]
  readonly width: number
  readonly height: number
  /** From the page as shown to the page as returned, for what belongs to its main direction. */
  readonly matrix: Affine
}

/**
 * The page turned so that most of its text runs from left to right; vertical columns become lines, the rightmost the
 * uppermost. Another direction with much text follows below, turned likewise; a little (margin stamps) is left out.
 */
export function turnedForReading(texts: readonly PlacedText[], width: number, height: number): TurnedPage {
  const groups = groupsByTurn(texts)
  const [main = { turn: 0 as const, texts: [], characters: 0 }, ...others] = groups
  const matrix = uprightMatrix(main.turn, width, height)
  const page = {
    texts: main.texts.map((text) => onBaseline(moved(text, matrix))),
    ...turnedSize(main.turn, width, height),
  }
  const all = groups.reduce((sum, group) => sum + group.characters, 0)
  for (const { turn, texts: side, characters } of others) {
    if (characters < MIN_SIDE_CHARACTERS || characters < MIN_SIDE_PART * all) continue
    const below: Affine = compose([1, 0, 0, 1, 0, page.height], uprightMatrix(turn, width, height))
    const size = turnedSize(turn, width, height)
    page.texts.push(...side.map((text) => onBaseline(moved(text, below))))
    page.height += size.height
    page.width = Math.max(page.width, size.width)
  }
  return { ...page, matrix }
}

interface TurnGroup {
  readonly turn: Turn
  readonly texts: PlacedText[]
  characters: number
}

/** The one with most characters first. */
function groupsByTurn(texts: readonly PlacedText[]): TurnGroup[] {
  const groups = new Map<Turn, TurnGroup>()
  for (const text of texts) {
    const group = groups.get(text.turn) ?? { turn: text.turn, texts: [], characters: 0 }
    group.texts.push(text)
    group.characters += text.text.length
    groups.set(text.turn, group)
  }
  return [...groups.values()].sort((one, other) => other.characters - one.characters)
}

function turnedSize(turn: Turn, width: number, height: number): { width: number; height: number } {
  return turn % 2 === 0 ? { width, height } : { width: height, height: width }
}

function onBaseline(text: PlacedText): PlacedText {
  return text.isVertical ? { ...text, y: text.y + VERTICAL_BASELINE * text.fontSize } : text
}
