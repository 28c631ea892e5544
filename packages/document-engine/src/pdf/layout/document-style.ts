import type { Line } from './layout-model.js'

/** Usual fonts, sizes and distances of a document. */
export interface DocumentStyle {
  readonly bodySize: number
  readonly isBodyBold: boolean
  readonly isBodyItalic: boolean
  /** Whether the body has a fixed pitch, as in a typewritten document, so that fixed pitch does not mean code. */
  readonly isBodyFixedPitch: boolean
  /** Usual distance of baselines of lines of this size. */
  leadingOf(size: number): number
  /** Words of the document in lower case, with compounds hyphenated within a line. */
  readonly words: ReadonlySet<string>
}

const DEFAULT_LEADING_EM = 1.22

/** @param pages lines or pieces of each page from the top; distances are measured to pieces right below */
export function documentStyle(pages: readonly (readonly Line[])[]): DocumentStyle {
  const lines = pages.flat()
  const sizes = new Tally()
  for (const line of lines) sizes.add(sizeClass(line.size), line.text.length)
  const bodySize = sizes.mode() ?? 10
  const leadings = leadingsBySize(pages)
  const body = lines.filter((line) => sizeClass(line.size) === bodySize)
  return {
    bodySize,
    isBodyBold: shareOf(body, (line) => line.isBold) > 0.6,
    isBodyItalic: shareOf(body, (line) => line.isItalic) > 0.6,
    isBodyFixedPitch: shareOf(lines, (line) => line.isFixedPitch) > 0.75,
    leadingOf: (size) => leadings.get(sizeClass(size)) ?? size * DEFAULT_LEADING_EM,
    words: wordsOf(lines),
  }
}

/** Sizes within a quarter point are equal, because producers round. */
export function sizeClass(size: number): number {
  return Math.round(size * 2) / 2
}

class Tally {
  private readonly counts = new Map<number, number>()

  add(value: number, weight: number): void {
    this.counts.set(value, (this.counts.get(value) ?? 0) + weight)
  }

  mode(): number | undefined {
    let best: number | undefined
    for (const [value, count] of this.counts) if (count > (this.counts.get(best ?? NaN) ?? 0)) best = value
    return best
  }
}

function shareOf(lines: readonly Line[], test: (line: Line) => boolean): number {
  const all = lines.reduce((sum, line) => sum + line.text.length, 0)
  const matching = lines.reduce((sum, line) => sum + (test(line) ? line.text.length : 0), 0)
  return all === 0 ? 0 : matching / all
}

function leadingsBySize(pages: readonly (readonly Line[])[]): Map<number, number> {
  const tallies = new Map<number, Tally>()
  for (const page of pages) {
    const lastAtLeftEdge = new Map<number, Line>()
    for (const line of page) {
      const column = Math.round(line.x1 / 3)
      const above = lastAtLeftEdge.get(column)
      lastAtLeftEdge.set(column, line)
      if (above === undefined || sizeClass(above.size) !== sizeClass(line.size)) continue
      const distance = line.y - above.y
      if (distance < line.size * 0.9 || distance > line.size * 2.6) continue
      const tally = tallies.get(sizeClass(line.size)) ?? new Tally()
      tallies.set(sizeClass(line.size), tally)
      tally.add(Math.round(distance * 2) / 2, Math.min(above.text.length, line.text.length))
    }
  }
  const leadings = new Map<number, number>()
  for (const [size, tally] of tallies) leadings.set(size, tally.mode() ?? size * DEFAULT_LEADING_EM)
  return leadings
}

/** The halves of words that are broken at line ends are no words. */
function wordsOf(lines: readonly Line[]): Set<string> {
  const words = new Set<string>()
  for (const line of lines) {
    const isBroken = /[-\u00ad\u2010]$/.test(line.text)
    const found = line.text.toLowerCase().match(/\p{L}+(?:[-\u2010]\p{L}+)*/gu) ?? []
    for (const [index, word] of found.entries()) {
      if (!(isBroken && index === found.length - 1)) words.add(word.replaceAll('\u2010', '-'))
    }
  }
  return words
}
