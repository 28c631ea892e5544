/** Direction of text, in quarter turns clockwise from left-to-right. */
export type Turn = 0 | 1 | 2 | 3

/** A piece of text and its place on the displayed page, in points from the upper left, y downwards. */
export interface PlacedText {
  readonly text: string
  readonly fontName: string
  readonly turn: Turn
  /** Start of the text on the baseline; for vertical writing in the middle of the column. */
  readonly x: number
  readonly y: number
  /** Length along the direction of the text. */
  readonly length: number
  readonly fontSize: number
  readonly isVertical: boolean
  /** Whether it is rotated by no multiple of a quarter turn, like a watermark. */
  readonly isTilted: boolean
  /** Whether it is drawn so that it looks bold, whatever its font. */
  readonly isDrawnBold: boolean
  /** Id of the tagged content around it, or `ARTIFACT`; absent without tags. */
  readonly contentId?: string | undefined
}

/** `[a, b, c, d, e, f]` as PDF writes it: x′ = a·x + c·y + e, y′ = b·x + d·y + f. */
export type Affine = readonly [number, number, number, number, number, number]

export type Point = readonly [number, number]

export const IDENTITY: Affine = [1, 0, 0, 1, 0, 0]

/** First `inner`, then `outer`. */
export function compose(outer: Affine, inner: Affine): Affine {
  return [
    outer[0] * inner[0] + outer[2] * inner[1],
    outer[1] * inner[0] + outer[3] * inner[1],
    outer[0] * inner[2] + outer[2] * inner[3],
    outer[1] * inner[2] + outer[3] * inner[3],
    outer[0] * inner[4] + outer[2] * inner[5] + outer[4],
    outer[1] * inner[4] + outer[3] * inner[5] + outer[5],
  ]
}

export function movedTo(matrix: Affine, x: number, y: number): Affine {
  return [matrix[0], matrix[1], matrix[2], matrix[3], ...applied(matrix, x, y)]
}

export function applied(matrix: Affine, x: number, y: number): Point {
  return [matrix[0] * x + matrix[2] * y + matrix[4], matrix[1] * x + matrix[3] * y + matrix[5]]
}

/** The six numbers of an array or a typed array; undefined when they are not six finite numbers. */
export function affineOf(value: unknown): Affine | undefined {
  if (!isIndexed(value) || value.length < 6) return undefined
  const [a, b, c, d, e, f] = [value[0], value[1], value[2], value[3], value[4], value[5]].map(Number)
  const matrix: Affine = [a ?? NaN, b ?? NaN, c ?? NaN, d ?? NaN, e ?? NaN, f ?? NaN]
  return matrix.every(Number.isFinite) ? matrix : undefined
}

/** Arrays and typed arrays, of any realm. */
export function isIndexed(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || ArrayBuffer.isView(value)
}
