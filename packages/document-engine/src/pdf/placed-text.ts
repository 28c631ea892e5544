import { type Affine, affineOf, applied, compose } from './geometry.js'
import { readableText } from './glyph-text.js'
import type { PlacedText, Turn } from './text-place.js'

/** Degrees; how far scanned text may lean and still count as straight. */
const MAX_LEAN_DEGREES = 10
/** Fonts drawn as pictures may lie about their size; no letter is as wide as this many sizes. */
const MAX_WIDTH_IN_SIZES = 4

export interface TextItem {
  readonly str: string
  readonly transform: unknown
  readonly width: number
  readonly height: number
  readonly fontName: string
}

/** @param matrix from the user space of the page to the page as shown; undefined for what is blank or nowhere */
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

/** Turns a page of that size so that text of this turn runs from left to right. */
export function uprightMatrix(turn: Turn, width: number, height: number): Affine {
  if (turn === 1) return [0, -1, 1, 0, 0, width]
  if (turn === 2) return [-1, 0, 0, -1, width, height]
  if (turn === 3) return [0, 1, -1, 0, height, 0]
  return [1, 0, 0, 1, 0, 0]
}

/** The same text on the page after such a turn. */
export function moved(text: PlacedText, matrix: Affine): PlacedText {
  const [x, y] = applied(matrix, text.x, text.y)
  return { ...text, x, y }
}
