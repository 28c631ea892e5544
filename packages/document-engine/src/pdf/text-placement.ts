import { type Affine, affineOf, applied, compose, type PlacedText, type Turn } from './geometry.js'
import { readableText } from './text-cleanup.js'

/** Degrees: most slant of scanned text that counts as straight. */
const MAX_LEAN_DEGREES = 10
/** Most width of a letter, in font sizes; fonts drawn as pictures may declare a wrong size. */
const MAX_WIDTH_IN_SIZES = 4

export interface TextItem {
  readonly str: string
  readonly transform: unknown
  readonly width: number
  readonly height: number
  readonly fontName: string
}

/**
 * @param matrix from the user space of the page to the displayed page
 * @returns undefined for blank text and for invalid positions
 */
export function placedText(item: TextItem, matrix: Affine, isVertical: boolean): PlacedText | undefined {
  const text = readableText(item.str)
  const own = affineOf(item.transform)
  if (own === undefined || text.trim() === '') return undefined
  const seen = compose(matrix, own)
  const { turn, isTilted } = directionOf(isVertical ? [-seen[2], -seen[3]] : [seen[0], seen[1]])
  const scale = Math.hypot(matrix[0], matrix[1])
  const length = (isVertical ? item.height : item.width) * scale
  const fontSize = believableSize(
    isVertical ? Math.hypot(seen[0], seen[1]) : Math.hypot(seen[2], seen[3]),
    text,
    length,
  )
  const place = { turn, x: seen[4], y: seen[5], length, fontSize }
  const placed = { text: text.trim(), fontName: item.fontName, ...place, isVertical, isTilted, isDrawnBold: false }
  const isSomewhere = [placed.x, placed.y, length, fontSize].every(Number.isFinite) && fontSize > 0
  return isSomewhere ? placed : undefined
}

function directionOf([x, y]: readonly [number, number]): { turn: Turn; isTilted: boolean } {
  const degrees = (Math.atan2(y, x) * 180) / Math.PI
  const quarters = Math.round(degrees / 90)
  const isTilted = Math.abs(degrees - quarters * 90) > MAX_LEAN_DEGREES
  return { turn: (((quarters % 4) + 4) % 4) as Turn, isTilted }
}

function believableSize(fontSize: number, text: string, length: number): number {
  const perCharacter = length / text.length
  return perCharacter > MAX_WIDTH_IN_SIZES * fontSize ? perCharacter * 2 : fontSize
}

/** Matrix that rotates a page of that size so that text of this turn runs from left to right. */
export function uprightMatrix(turn: Turn, width: number, height: number): Affine {
  if (turn === 1) return [0, -1, 1, 0, 0, width]
  if (turn === 2) return [-1, 0, 0, -1, width, height]
  if (turn === 3) return [0, 1, -1, 0, height, 0]
  return [1, 0, 0, 1, 0, 0]
}

/** The text on the rotated page. */
export function moved(text: PlacedText, matrix: Affine): PlacedText {
  const [x, y] = applied(matrix, text.x, text.y)
  return { ...text, x, y }
}

/** Least characters, and least share of the page, of text in another direction; less is a margin stamp. */
const MIN_SIDE_CHARACTERS = 200
const MIN_SIDE_PART = 0.15
/** From the middle of a column of vertical writing to its baseline, in font sizes. */
const VERTICAL_BASELINE = 0.35

interface TurnedPage {
  readonly texts: readonly PlacedText[]
  readonly width: number
  readonly height: number
  /** From the displayed page to the returned page, for content in the main direction. */
  readonly matrix: Affine
}

/**
 * Rotates the page so that most of its text runs from left to right; vertical columns become lines, the rightmost the
 * uppermost. Other directions with much text follow below, rotated likewise; little text (margin stamps) is left out.
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
