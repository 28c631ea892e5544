import { type Affine, applied, isIndexed, type Point } from './geometry.js'
import type { Rule } from './layout/layout-model.js'

/** Codes of the path segments in an operator list of pdf.js, and how many numbers follow each. */
const LINE_TO = 1
const CLOSE_PATH = 4
const NUMBERS_OF_SEGMENT = [2, 2, 6, 4, 0] as const

/** Points: a filled box this thin is a line. */
const MAX_RULE_THICKNESS = 3
/** Points: a shorter line is a tick, a dot or part of a picture. */
const MIN_RULE_LENGTH = 3
/** Points: most deviation of a line from horizontal or vertical. */
const MAX_LEAN = 0.7
/** Points: most distance between dashes of one line. */
const MAX_DASH_GAP = 3

/** A path of more numbers is a drawing, not the lines of a table. */
const MAX_PATH_NUMBERS = 100_000

/** The corners of the parts of a path, as they appear after `matrix`; curves are left out and break their part. */
function subpathsOf(path: unknown, matrix: Affine): Point[][] {
  const subpaths: Point[][] = []
  let current: Point[] = []
  const finish = () => {
    if (current.length > 1) subpaths.push(current)
    current = []
  }
  if (!isIndexed(path) || path.length > MAX_PATH_NUMBERS) return subpaths
  for (let index = 0; index < path.length;) {
    const segment = Number(path[index])
    const numbers = NUMBERS_OF_SEGMENT[segment]
    if (numbers === undefined) break
    const end = applied(matrix, Number(path[index + numbers - 1]), Number(path[index + numbers]))
    if (segment === CLOSE_PATH) {
      if (current[0] !== undefined) current.push(current[0])
    } else {
      if (segment !== LINE_TO) finish()
      current.push(end)
    }
    index += 1 + numbers
  }
  finish()
  return subpaths
}

/** The straight lines of a path that is drawn with a pen. */
export function strokedLines(path: unknown, matrix: Affine): Rule[] {
  return subpathsOf(path, matrix).flatMap((points) =>
    points.slice(1).flatMap((point, index) => {
      const line = straightLine(points[index] ?? point, point)
      return line === undefined ? [] : [line]
    }),
  )
}

/** The thin boxes of a path that is filled, each as a line through its middle. */
export function filledLines(path: unknown, matrix: Affine): Rule[] {
  return subpathsOf(path, matrix).flatMap((points) => {
    if (!isBox(points)) return []
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)]
    const [x1, y1, x2, y2] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
    if (Math.min(x2 - x1, y2 - y1) > MAX_RULE_THICKNESS) return []
    const [middleX, middleY] = [(x1 + x2) / 2, (y1 + y2) / 2]
    return [x2 - x1 >= y2 - y1 ? { x1, y1: middleY, x2, y2: middleY } : { x1: middleX, y1, x2: middleX, y2 }]
  })
}

function isBox(points: readonly Point[]): boolean {
  if (points.length > 6) return false
  return points.every(([x, y], index) => {
    const [nextX, nextY] = points[index + 1] ?? [x, y]
    return Math.min(Math.abs(nextX - x), Math.abs(nextY - y)) <= MAX_LEAN
  })
}

function straightLine([fromX, fromY]: Point, [toX, toY]: Point): Rule | undefined {
  const [x1, x2] = [Math.min(fromX, toX), Math.max(fromX, toX)]
  const [y1, y2] = [Math.min(fromY, toY), Math.max(fromY, toY)]
  if (y2 - y1 <= MAX_LEAN && x2 > x1) return { x1, y1: (y1 + y2) / 2, x2, y2: (y1 + y2) / 2 }
  if (x2 - x1 <= MAX_LEAN && y2 > y1) return { x1: (x1 + x2) / 2, y1, x2: (x1 + x2) / 2, y2 }
  return undefined
}

/**
 * Lines that continue each other (dashes, a line drawn cell by cell) as one; what stays too short to be a line, or lies
 * outside the page, is left out. n log n.
 */
export function joinedLines(lines: readonly Rule[], page: { width: number; height: number }): Rule[] {
  const horizontal = lines.filter((line) => line.y1 === line.y2)
  const vertical = lines.filter((line) => line.y1 !== line.y2)
  const joined = [...joinedAcross(horizontal), ...joinedAcross(vertical.map(turned)).map(turned)]
  return joined
    .filter((line) => line.x2 >= 0 && line.x1 <= page.width && line.y2 >= 0 && line.y1 <= page.height)
    .filter((line) => line.x2 - line.x1 + line.y2 - line.y1 >= MIN_RULE_LENGTH)
}

function turned({ x1, y1, x2, y2 }: Rule): Rule {
  return { x1: y1, y1: x1, x2: y2, y2: x2 }
}

function joinedAcross(horizontal: readonly Rule[]): Rule[] {
  const level = (line: Rule) => Math.round(line.y1 / MAX_LEAN)
  const sorted = [...horizontal].sort((one, other) => level(one) - level(other) || one.x1 - other.x1)
  const joined: Rule[] = []
  for (const line of sorted) {
    const last = joined.at(-1)
    if (last !== undefined && level(last) === level(line) && line.x1 - last.x2 <= MAX_DASH_GAP) {
      joined[joined.length - 1] = { ...last, x2: Math.max(last.x2, line.x2) }
    } else joined.push(line)
  }
  return joined
}

/** @param matrix of quarter turns, so that the line stays horizontal or vertical */
export function turnedLine({ x1, y1, x2, y2 }: Rule, matrix: Affine): Rule {
  const [[fromX, fromY], [toX, toY]] = [applied(matrix, x1, y1), applied(matrix, x2, y2)]
  return { x1: Math.min(fromX, toX), y1: Math.min(fromY, toY), x2: Math.max(fromX, toX), y2: Math.max(fromY, toY) }
}
