import { type Affine, applied, isIndexed, type PlacedText } from './geometry.js'
import type { LinkArea } from './layout/layout-model.js'

/** Annotation types of PDF 32000-1, 12.5.6, as pdf.js numbers them. */
const LINK = 2
const FREE_TEXT = 3
const WIDGET = 20

const LINKABLE = /^(?:https?:\/\/|mailto:)/i
const MAX_AREAS = 5000
/** Font size, in points, of a form field without one. */
const FIELD_FONT_SIZE = 10
/** Height of a line, and mean width of a character, in font sizes. */
const LINE_HEIGHT = 1.2
const MEAN_CHARACTER_WIDTH = 0.5

/** Font name for text of annotations, whose font is not known. */
export const ANNOTATION_FONT = 'annotation'

type Box = readonly [number, number, number, number]

interface Annotation {
  readonly annotationType?: unknown
  readonly url?: unknown
  readonly rect?: unknown
  readonly quadPoints?: unknown
  readonly hidden?: unknown
  readonly fieldType?: unknown
  readonly fieldValue?: unknown
  readonly password?: unknown
  readonly textContent?: unknown
  readonly defaultAppearanceData?: unknown
}

/** @param matrix from the user space of the page to the target space */
export function linkAreas(annotations: readonly unknown[], matrix: Affine): LinkArea[] {
  return annotations.flatMap((annotation) => areasOf(annotation, matrix)).slice(0, MAX_AREAS)
}

function areasOf(annotation: unknown, matrix: Affine): LinkArea[] {
  if (!isAnnotation(annotation) || annotation.annotationType !== LINK) return []
  const { url } = annotation
  if (typeof url !== 'string' || !LINKABLE.test(url)) return []
  const quads = boxesOfQuads(annotation.quadPoints)
  const boxes = quads.length > 0 ? quads : boxOf(annotation.rect)
  return boxes.map((box) => {
    const [x1, y1, x2, y2] = seenBox(box, matrix)
    return { x: x1, y: y1, width: x2 - x1, height: y2 - y1, url }
  })
}

/** Values of form fields and text of free-text annotations. */
export function annotationTexts(annotations: readonly unknown[], matrix: Affine): PlacedText[] {
  return annotations.flatMap((annotation) => {
    if (!isAnnotation(annotation) || annotation.hidden === true) return []
    const [box] = boxOf(annotation.rect)
    return box === undefined ? [] : placedLines(linesOf(annotation), seenBox(box, matrix), fontSizeOf(annotation))
  })
}

function linesOf(annotation: Annotation): string[] {
  const { annotationType, fieldType, fieldValue, textContent } = annotation
  if (annotationType === FREE_TEXT) return Array.isArray(textContent) ? textContent.map(String) : []
  if (annotationType !== WIDGET || annotation.password === true) return []
  if (fieldType === 'Ch') return Array.isArray(fieldValue) ? fieldValue.map(String) : []
  return fieldType === 'Tx' && typeof fieldValue === 'string' ? fieldValue.split(/\r\n?|\n/) : []
}

/** Places lines from the top of the box; a single line in its middle. */
function placedLines(lines: readonly string[], [x1, y1, x2, y2]: Box, claimedSize: number): PlacedText[] {
  const fontSize = Math.min(claimedSize, Math.max(y2 - y1, 1))
  const top = lines.length === 1 ? (y1 + y2 - fontSize) / 2 : y1
  return lines.flatMap((line, index) => {
    const text = line.trim()
    if (text === '') return []
    const y = top + 0.8 * fontSize + index * LINE_HEIGHT * fontSize
    const length = Math.min(text.length * MEAN_CHARACTER_WIDTH * fontSize, Math.max(x2 - x1, 1))
    const place = { turn: 0 as const, x: x1, y, length, fontSize }
    return [{ text, fontName: ANNOTATION_FONT, ...place, isVertical: false, isTilted: false, isDrawnBold: false }]
  })
}

function fontSizeOf({ defaultAppearanceData: appearance }: Annotation): number {
  const size =
    typeof appearance === 'object' && appearance !== null && 'fontSize' in appearance ? Number(appearance.fontSize) : 0
  return size > 0 ? size : FIELD_FONT_SIZE
}

function isAnnotation(value: unknown): value is Annotation {
  return typeof value === 'object' && value !== null
}

function boxOf(rect: unknown): Box[] {
  const numbers = numbersOf(rect)
  const [x1, y1, x2, y2] = numbers
  if (x1 === undefined || y1 === undefined || x2 === undefined || y2 === undefined) return []
  return numbers.every(Number.isFinite) ? [[x1, y1, x2, y2]] : []
}

/** A link over several lines has a quadrilateral, eight numbers, for each. */
function boxesOfQuads(quads: unknown): Box[] {
  const numbers = numbersOf(quads)
  if (numbers.length % 8 !== 0 || !numbers.every(Number.isFinite)) return []
  return Array.from({ length: numbers.length / 8 }, (_, index) => {
    const corners = numbers.slice(index * 8, index * 8 + 8)
    const xs = corners.filter((_, place) => place % 2 === 0)
    const ys = corners.filter((_, place) => place % 2 === 1)
    return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
  })
}

function numbersOf(value: unknown): number[] {
  return isIndexed(value) ? Array.from(value, Number) : []
}

function seenBox([x1, y1, x2, y2]: Box, matrix: Affine): Box {
  const [fromX, fromY] = applied(matrix, x1, y1)
  const [toX, toY] = applied(matrix, x2, y2)
  return [Math.min(fromX, toX), Math.min(fromY, toY), Math.max(fromX, toX), Math.max(fromY, toY)]
}
