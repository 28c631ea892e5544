import { collapseSpaces } from '../../markdown/escape-markdown.js'
import type { Line } from './layout-model.js'
import { sizeClass } from './document-style.js'

const ENOUGH_PAGES = 3
const SHARE_OF_PAGES = 0.6
/** Number of lines at either end of a page that may be its header or footer. */
const OUTER_ROWS = 3
const PAGE_NUMBER_PATTERN =
  /^[-–—\s|[(]*(?:(?:page|seite|página|p\.|pg\.)\s*)?#(?:\s*(?:of|\/|von|de)\s*#)?[-–—\s|\])]*$/iu
const ROMAN_PATTERN = /\b(?=[ivxlcdm])(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})\b/gi

/** Removes repeated headers and footers from pages of pieces, which are ordered from the top. */
export function withoutRunningHeads(pages: readonly (readonly Line[])[], heights: readonly number[]): Line[][] {
  const outer = pages.map((lines, index) => outerLines(lines, heights[index] ?? 0))
  const repeated = repeatedPlaces(outer)
  const numbers = pageNumberPlaces(outer)
  const chapters = chapterPlaces(outer)
  const isRunning = (line: OuterLine, page: number): boolean =>
    repeated.has(placeOf(line, patternOf(line.text))) ||
    numbers.has(numberPlaceOf(line, page) ?? '') ||
    (line.row === 1 && chapters.has(placeOf(line, '')))
  return pages.map((lines, index) => {
    const candidates = outer[index] ?? []
    const isFewPages = pages.length < ENOUGH_PAGES
    const found = candidates.filter((line) =>
      isFewPages ? isLonePageNumber(line, index, lines) : isRunning(line, index),
    )
    const gone = new Set(found.flatMap((head) => withOuterRow(head, candidates)))
    return lines.filter((line) => !gone.has(line))
  })
}

interface OuterLine {
  readonly line: Line
  readonly text: string
  /** Distance from the nearer end of the page; negative from the bottom. */
  readonly place: number
  /** Number of the line from that end, 1 for the outermost. */
  readonly row: number
}

function outerLines(lines: readonly Line[], height: number): OuterLine[] {
  const byHeight = [...lines].sort((a, b) => a.y - b.y)
  const fromBelow = [...byHeight].reverse()
  return [
    ...outerRows(byHeight).map(({ line, row }) => ({ line, text: line.text, row, place: line.y })),
    ...outerRows(fromBelow).map(({ line, row }) => ({ line, text: line.text, row, place: line.y - height - 1 })),
  ]
}

function outerRows(sorted: readonly Line[]): { line: Line; row: number }[] {
  const found: { line: Line; row: number }[] = []
  let rows = 0
  let y = NaN
  for (const line of sorted) {
    if (Number.isNaN(y) || Math.abs(line.y - y) > 2) rows += 1
    if (rows > OUTER_ROWS) break
    y = line.y
    found.push({ line, row: rows })
  }
  return found
}

/** Pieces beside a header in the outermost row belong to it, such as the chapter beside the page number. */
function withOuterRow(head: OuterLine, candidates: readonly OuterLine[]): Line[] {
  if (head.row > 1) return [head.line]
  return candidates.filter(({ line, row }) => row === 1 && Math.abs(line.y - head.line.y) < 2).map(({ line }) => line)
}

/** Text with a placeholder for numbers, arabic and roman. */
function patternOf(text: string): string {
  const plain = text.replace(ROMAN_PATTERN, (number) => (number === '' ? '' : '#')).replace(/\d\d*/g, '#')
  return collapseSpaces(plain).toLowerCase()
}

function placeOf(outer: OuterLine, pattern: string): string {
  return `${String(Math.round(outer.place / 3))} ${String(sizeClass(outer.line.size))} ${pattern}`
}

/** The indexes of the pages with a line at each place. */
function pagesBy(
  pages: readonly (readonly OuterLine[])[],
  placeOn: (line: OuterLine, page: number) => string | undefined,
): Map<string, Set<number>> {
  const pagesByPlace = new Map<string, Set<number>>()
  for (const [page, lines] of pages.entries()) {
    for (const line of lines) {
      const place = placeOn(line, page)
      if (place !== undefined) pagesByPlace.set(place, (pagesByPlace.get(place) ?? new Set()).add(page))
    }
  }
  return pagesByPlace
}

/** Texts that are repeated at one place on most pages, or on most left or right pages. */
function repeatedPlaces(pages: readonly (readonly OuterLine[])[]): Set<string> {
  const pagesByPlace = pagesBy(pages, (line) => placeOf(line, patternOf(line.text)))
  const found = new Set<string>()
  for (const [place, on] of pagesByPlace) {
    const odd = [...on].filter((page) => page % 2 === 1).length
    const perSide = Math.max(odd, on.size - odd)
    const isOnOneSide = perSide >= ENOUGH_PAGES && perSide >= (pages.length / 2) * SHARE_OF_PAGES
    if ((on.size >= ENOUGH_PAGES && on.size >= pages.length * SHARE_OF_PAGES) || isOnOneSide) found.add(place)
  }
  return found
}

/**
 * Outermost places where the text is the same for some pages and then changes, like names of chapters. The first line of
 * the body is at one place on all pages too, but is not repeated.
 */
function chapterPlaces(pages: readonly (readonly OuterLine[])[]): Set<string> {
  const textsByPlace = new Map<string, Map<string, number>>()
  for (const lines of pages) {
    for (const line of lines.filter(({ row }) => row === 1)) {
      const texts = textsByPlace.get(placeOf(line, '')) ?? new Map<string, number>()
      textsByPlace.set(placeOf(line, ''), texts)
      texts.set(line.text, (texts.get(line.text) ?? 0) + 1)
    }
  }
  const found = new Set<string>()
  for (const [place, texts] of textsByPlace) {
    const counts = [...texts.values()]
    const all = counts.reduce((sum, count) => sum + count, 0)
    const repeated = counts.filter((count) => count > 1).reduce((sum, count) => sum + count, 0)
    if (all >= ENOUGH_PAGES && all >= pages.length * 0.3 && repeated >= all * 0.8) found.add(place)
  }
  return found
}

/** Places of page numbers: a number that grows with the page, whatever the words beside it. */
function pageNumberPlaces(pages: readonly (readonly OuterLine[])[]): Set<string> {
  const entries = [...pagesBy(pages, numberPlaceOf)].filter(
    ([, on]) => on.size >= ENOUGH_PAGES && on.size >= pages.length * 0.25,
  )
  return new Set(entries.map(([place]) => place))
}

function numberPlaceOf(outer: OuterLine, page: number): string | undefined {
  const number = /^(\d{1,4})\b/.exec(outer.text)?.[1] ?? /\b(\d{1,4})$/.exec(outer.text)?.[1]
  if (number === undefined) return undefined
  return `${String(Math.round(outer.place / 3))} ${String(sizeClass(outer.line.size))} ${String(Number(number) - page)}`
}

function isLonePageNumber(outer: OuterLine, page: number, lines: readonly Line[]): boolean {
  if (!PAGE_NUMBER_PATTERN.test(patternOf(outer.text)) || Number(/\d+/.exec(outer.text)?.[0]) !== page + 1) return false
  const { line } = outer
  return lines.every((other) => other === line || Math.abs(other.y - line.y) > line.size * 1.8)
}
