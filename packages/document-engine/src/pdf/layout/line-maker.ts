import { firstCharacter, isCjk, isRightToLeft, lastCharacter } from './characters.js'
import type { Line, Span } from './layout-model.js'

/** In em of the larger font; TeX squeezes a blank to 0.22 em, its kerns stay below 0.12 em. */
const BLANK_GAP_EM = 0.17
const CJK_BLANK_GAP_EM = 0.6

/** Puts spans of one baseline, in any order, into a line. `spans` is not empty. */
export function makeLine(spans: readonly Span[], page: number): Line {
  const ordered = inReadingOrder(spans).map((span, index, all) => withBlank(all[index - 1], span))
  const base = dominantSpans(ordered)
  const size = weightedSize(base)
  const y = base[0]?.y ?? 0
  return {
    kind: 'line',
    page,
    spans: ordered,
    text: textOf(ordered),
    x1: ordered.reduce((least, span) => Math.min(least, span.x1), Infinity),
    x2: ordered.reduce((most, span) => Math.max(most, span.x2), -Infinity),
    y,
    top: y - size * 0.8,
    bottom: y + size * 0.22,
    size,
    isBold: isMostly(base, (span) => span.isBold),
    isItalic: isMostly(base, (span) => span.isItalic),
    isFixedPitch: isMostly(base, (span) => span.isFixedPitch),
  }
}

/** Lines or pieces of one baseline as one line. */
export function mergeLines(lines: readonly Line[]): Line {
  const [only] = lines
  if (lines.length === 1 && only !== undefined) return only
  return makeLine(
    lines.flatMap((line) => line.spans),
    only?.page ?? 0,
  )
}

function textOf(spans: readonly Span[]): string {
  return spans
    .map((span) => (span.hasBlankBefore ? ` ${span.text}` : span.text))
    .join('')
    .replace(/[\s\u00a0]+/g, ' ')
    .trim()
}

/** Negative when they overlap; the same for both directions of writing. */
export function gapBetween(a: Span, b: Span): number {
  return Math.max(b.x1 - a.x2, a.x1 - b.x2)
}

function withBlank(previous: Span | undefined, span: Span): Span {
  const hasBlankBefore = previous !== undefined && isBlankBetween(previous, span)
  return hasBlankBefore === span.hasBlankBefore ? span : { ...span, hasBlankBefore }
}

function isBlankBetween(a: Span, b: Span): boolean {
  if (/\s$/.test(a.text) || /^\s/.test(b.text)) return true
  const em = gapBetween(a, b) / Math.max(a.size, b.size)
  const isBetweenCjk = isCjk(lastCharacter(a.text)) && isCjk(firstCharacter(b.text))
  return em > (isBetweenCjk ? CJK_BLANK_GAP_EM : BLANK_GAP_EM)
}

function inReadingOrder(spans: readonly Span[]): Span[] {
  const fromLeft = [...spans].sort((a, b) => a.x1 - b.x1)
  const rightToLeft = fromLeft.filter((span) => isRightToLeft(span.text))
  if (lengthOf(rightToLeft) * 2 < lengthOf(fromLeft)) return fromLeft
  const ordered: Span[] = []
  let island: Span[] = []
  for (const span of fromLeft.reverse()) {
    if (isRightToLeft(span.text)) {
      ordered.push(...island, span)
      island = []
    } else island.unshift(span)
  }
  return [...ordered, ...island]
}

function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, span) => sum + span.text.length, 0)
}

function dominantSpans(spans: readonly Span[]): readonly Span[] {
  const base = spans.filter((span) => span.script === 'base' && !/^[.\s]+$/.test(span.text))
  return base.length === 0 ? spans : base
}

function weightedSize(spans: readonly Span[]): number {
  const charactersBySize = new Map<number, number>()
  let best = spans[0]?.size ?? 0
  for (const span of spans) {
    const characters = (charactersBySize.get(span.size) ?? 0) + span.text.length
    charactersBySize.set(span.size, characters)
    if (characters > (charactersBySize.get(best) ?? 0)) best = span.size
  }
  return best
}

/** Punctuation and marks are often set in another font; nine tenths of the characters decide. */
function isMostly(spans: readonly Span[], test: (span: Span) => boolean): boolean {
  return lengthOf(spans.filter(test)) >= lengthOf(spans) * 0.9
}
