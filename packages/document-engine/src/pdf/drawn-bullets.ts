import { type Affine, applied, isIndexed, type PlacedText } from './geometry.js'

/** Points: least and most side of a shape that may be a bullet. */
const MIN_SIDE = 1.2
const MAX_SIDE = 9
/** Most ratio of its sides. */
const MAX_RATIO = 1.5
/** A page with more small shapes is a drawing. */
export const MAX_SHAPES = 300
/** In em: most width of a bullet, its distance to the text, and the height of its middle above the baseline. */
const MAX_WIDTH = 0.75
const MIN_GAP = 0.1
const MAX_GAP = 3
const MIN_HEIGHT = 0.1
const MAX_HEIGHT = 0.65
/** In em: text this close before the shape makes it a part of a line. */
const CLOSE = 1.5
/** Height, in points, of the slices by which texts are looked up. */
const SLICE = 8
/** Most texts of a slice that are looked at. */
const MAX_TEXTS = 300

/** A small shape on the displayed page. */
export interface SmallShape {
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
  readonly isFilled: boolean
}

/** @param bounds least x and y, greatest x and y of a path, before `matrix`; undefined for what is no bullet */
export function smallShape(bounds: unknown, matrix: Affine, isFilled: boolean): SmallShape | undefined {
  if (!isIndexed(bounds) || bounds.length < 4) return undefined
  const [fromX, fromY] = applied(matrix, Number(bounds[0]), Number(bounds[1]))
  const [toX, toY] = applied(matrix, Number(bounds[2]), Number(bounds[3]))
  const [width, height] = [Math.abs(toX - fromX), Math.abs(toY - fromY)]
  const isSmall = Math.min(width, height) >= MIN_SIDE && Math.max(width, height) <= MAX_SIDE
  if (!isSmall || Math.max(width, height) > MAX_RATIO * Math.min(width, height)) return undefined
  const [x1, y1] = [Math.min(fromX, toX), Math.min(fromY, toY)]
  return { x1, y1, x2: x1 + width, y2: y1 + height, isFilled }
}

/** The texts with a bullet for each small shape that stands left of a line: browsers draw them. */
export function withDrawnBullets(texts: readonly PlacedText[], shapes: readonly SmallShape[]): PlacedText[] {
  if (shapes.length === 0 || shapes.length > MAX_SHAPES) return [...texts]
  const slices = new Map<number, PlacedText[]>()
  for (const text of texts) {
    if (text.turn !== 0) continue
    const slice = Math.floor(text.y / SLICE)
    const known = slices.get(slice)
    if (known === undefined) slices.set(slice, [text])
    else if (known.length < MAX_TEXTS) known.push(text)
  }
  return [...texts, ...shapes.flatMap((shape) => bulletOf(shape, slices))]
}

function bulletOf(shape: SmallShape, slices: ReadonlyMap<number, readonly PlacedText[]>): PlacedText[] {
  const middle = (shape.y1 + shape.y2) / 2
  const first = Math.floor(middle / SLICE)
  const beside = [first, first + 1, first + 2]
    .flatMap((slice) => slices.get(slice) ?? [])
    .filter((text) => isBeside(text, middle, shape))
  const follower = beside
    .filter((text) => text.x >= shape.x2)
    .reduce<PlacedText | undefined>((next, text) => (next === undefined || text.x < next.x ? text : next), undefined)
  if (follower === undefined || !isGap(follower.x - shape.x2, follower)) return []
  const { fontSize } = follower
  const isWithin = beside.some((text) => text.x < shape.x2 && text.x + text.length > shape.x1 - CLOSE * fontSize)
  if (isWithin) return []
  return [{ ...follower, text: shape.isFilled ? '•' : '◦', x: shape.x1, length: shape.x2 - shape.x1 }]
}

function isBeside({ y, fontSize }: PlacedText, middle: number, shape: SmallShape): boolean {
  const height = (y - middle) / fontSize
  return height >= MIN_HEIGHT && height <= MAX_HEIGHT && shape.x2 - shape.x1 <= MAX_WIDTH * fontSize
}

const isGap = (gap: number, { fontSize }: PlacedText): boolean => gap >= MIN_GAP * fontSize && gap <= MAX_GAP * fontSize
