import type { Line, Marker, Span } from './layout-model.js'
import { makeLine } from './lines.js'

/** Bullets; symbol fonts have theirs as private-use characters. */
const CERTAIN_BULLETS = '•‣◦▪▫●○■□◆◇➢➤►▶✓✔❖∙⁃\uf0b7\uf0a7\uf0d8\uf076\uf0fc\uf0a8\u2751\u25aa\u25cf'
const POSSIBLE_BULLETS = '-‐‒–—*·+o'
const BULLET_PATTERN = new RegExp(`^([${CERTAIN_BULLETS}]|[${POSSIBLE_BULLETS}](?=\\s|$))\\s*`, 'u')
const ORDERED_PATTERN =
  /^(?:(\d{1,3})([.)])|\((\d{1,3})\)|([a-z])([.)])|\(([a-z])\)|([ivx]{2,5})([.)])|\(([ivx]{2,5})\))(?:\s+|$)/u
const ROMAN_VALUES = new Map([
  ['i', 1],
  ['v', 5],
  ['x', 10],
])

export interface MarkedLine {
  readonly marker: Marker
  /** Second reading: `i`, `v` and `x` are numbers and letters. */
  readonly otherMarker: Marker | undefined
  /** Undefined when the marker stands alone. */
  readonly text: Line | undefined
  readonly isCertain: boolean
}

/** Whether the whole text is the marker of a list item or of a reference. */
export function isListMark(text: string): boolean {
  const mark = text.trim()
  const isBullet = mark.length <= 2 && (CERTAIN_BULLETS + POSSIBLE_BULLETS).includes(mark)
  return isBullet || (ORDERED_PATTERN.test(mark) && !/\s/.test(mark)) || /^\[[\w+-]{1,8}\]$/.test(mark)
}

/** Splits the marker off a line that begins with one. */
export function readMarker(line: Line): MarkedLine | undefined {
  const bullet = BULLET_PATTERN.exec(line.text)
  if (bullet?.[1] !== undefined) {
    const marker: Marker = { kind: 'bullet', label: '-', style: bullet[1], ordinal: 1 }
    return {
      marker,
      otherMarker: undefined,
      text: withoutStart(line, bullet[0]),
      isCertain: CERTAIN_BULLETS.includes(bullet[1]),
    }
  }
  const ordered = ORDERED_PATTERN.exec(line.text)
  if (ordered === null) return undefined
  const text = withoutStart(line, ordered[0])
  const [marker, otherMarker] = orderedMarkers(ordered)
  return { marker, otherMarker, text, isCertain: false }
}

/** Prefers the roman reading of a single `i`: the first item is more frequent than the ninth. */
function orderedMarkers(match: RegExpExecArray): [Marker, Marker | undefined] {
  const shape = match[0].trim()
  const digits = match[1] ?? match[3]
  if (digits !== undefined) return [markerOf(shape, '1', Number(digits)), undefined]
  const letter = match[4] ?? match[6]
  if (letter === undefined) return [markerOf(shape, 'i', romanValue(match[7] ?? match[9] ?? '')), undefined]
  const asLetter = markerOf(shape, 'a', letter.charCodeAt(0) - 96)
  if (!ROMAN_VALUES.has(letter)) return [asLetter, undefined]
  const asRoman = markerOf(shape, 'i', romanValue(letter))
  return letter === 'i' ? [asRoman, asLetter] : [asLetter, asRoman]
}

function markerOf(shape: string, digit: string, ordinal: number): Marker {
  return { kind: 'ordered', label: `${String(ordinal)}.`, style: shape.replace(/[\da-z]+/u, digit), ordinal }
}

function romanValue(numeral: string): number {
  const values = Array.from(numeral, (letter) => ROMAN_VALUES.get(letter) ?? 0)
  return values.reduce((sum, value, index) => (value < (values[index + 1] ?? 0) ? sum - value : sum + value), 0)
}

function withoutStart(line: Line, start: string): Line | undefined {
  let left = start.replace(/\s/g, '').length
  const spans: Span[] = []
  for (const span of line.spans) {
    if (left === 0) {
      spans.push(span)
      continue
    }
    const cut = cutCharacters(span, left)
    left -= cut.taken
    if (cut.rest !== undefined) spans.push(cut.rest)
  }
  return spans.length === 0 ? undefined : makeLine(spans, line.page)
}

/** Removes characters, blanks not counted, from the start of the span. */
function cutCharacters(span: Span, count: number): { taken: number; rest: Span | undefined } {
  let taken = 0
  let at = 0
  while (at < span.text.length && (taken < count || /\s/.test(span.text[at] ?? ''))) {
    if (!/\s/.test(span.text[at] ?? '')) taken += 1
    at += 1
  }
  const text = span.text.slice(at)
  const x1 = span.x1 + ((span.x2 - span.x1) * at) / span.text.length
  return { taken, rest: text.trim() === '' ? undefined : { ...span, text, x1 } }
}
