/** Quarter turns clockwise by which the text runs other than from left to right. */
export type Turn = 0 | 1 | 2 | 3

/** A piece of text where it stands on the page as shown, in points, from the upper left, y downwards. */
export interface PlacedText {
  readonly text: string
  readonly fontName: string
  readonly turn: Turn
  /** Of its beginning, on the baseline; of vertical writing: in the middle of the column. */
  readonly x: number
  readonly y: number
  /** Along the direction of the text. */
  readonly length: number
  readonly fontSize: number
  readonly isVertical: boolean
  /** Stands askew, as a watermark does. */
  readonly isTilted: boolean
  /** Made bold by the way it is drawn, whatever its font. */
  readonly isDrawnBold: boolean
}
