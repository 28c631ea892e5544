import { collapseSpaces, firstCharacter, lastCharacter } from '../../markdown/escape-markdown.js'
import type { Line, Span } from './layout-model.js'
import { isCjk, isRightToLeft } from './line-text.js'
import { usualSize } from './spans.js'

/** In em of the larger font; TeX squeezes a blank to 0.22 em, its kerns stay below 0.12 em. */
const BLANK_GAP_EM = 0.17
const CJK_BLANK_GAP_EM = 0.6

/** Puts spans of one baseline, in any order, into a line. `spans` is not empty. */
export function makeLine(spans: readonly Span[], page: number): Line {
  const ordered = inReadingOrder(spans).map((span, index, all) => withBlank(all[index - 1], span))
  const base = dominantSpans(ordered)
  const size = usualSize(base)
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
  const text = spans.map((span) => (span.hasBlankBefore ? ` ${span.text}` : span.text)).join('')
  return collapseSpaces(text).trim()
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

/** Nine tenths of the characters decide, because punctuation is often in another font. */
function isMostly(spans: readonly Span[], test: (span: Span) => boolean): boolean {
  return lengthOf(spans.filter(test)) >= lengthOf(spans) * 0.9
}

/** Least gap, in em, between columns and cells; blanks of justified lines are rarely so wide. */
const PIECE_GAP_EM = 0.9
const BASELINE_TOLERANCE_EM = 0.22
/** Browsers set them at 0.83 of their line. */
const SCRIPT_SIZE_RATIO = 0.86

/** Baseline clusters cut at wide gaps, from the top. Raised and lowered small text stands in the piece it belongs to. */
export function piecesOf(spans: readonly Span[], page: number): Line[] {
  const rows = baselineRows(spans).flatMap((row) => cutAtGaps(row))
  return attachScripts(rows).map((row) => makeLine(row, page))
}

function baselineRows(spans: readonly Span[]): Span[][] {
  const sorted = [...spans].sort((a, b) => a.y - b.y)
  const rows: Span[][] = []
  let row: Span[] = []
  for (const span of sorted) {
    const anchor = row[0]
    const tolerance = BASELINE_TOLERANCE_EM * Math.min(span.size, anchor?.size ?? span.size)
    if (anchor !== undefined && span.y - anchor.y <= tolerance) row.push(span)
    else {
      if (anchor !== undefined) rows.push(row)
      row = [span]
    }
  }
  if (row.length > 0) rows.push(row)
  return rows
}

function cutAtGaps(row: readonly Span[]): Span[][] {
  const sorted = [...row].sort((a, b) => a.x1 - b.x1)
  const pieces: Span[][] = []
  let piece: Span[] = []
  let end = -Infinity
  for (const span of sorted) {
    const last = piece.at(-1)
    if (last !== undefined && span.x1 - end > PIECE_GAP_EM * gapSize(last.size, span.size)) {
      pieces.push(piece)
      piece = []
      end = -Infinity
    }
    piece.push(span)
    end = Math.max(end, span.x2)
  }
  if (piece.length > 0) pieces.push(piece)
  return pieces
}

/** Least share of the larger size: a small index does not part its line. */
const LEAST_SIZE_SHARE = 0.6

/** The smaller size: beside a large title, another column begins closer than its own em. */
function gapSize(one: number, other: number): number {
  return Math.max(Math.min(one, other), Math.max(one, other) * LEAST_SIZE_SHARE)
}

interface Host {
  spans: Span[]
  readonly y: number
  readonly size: number
  x1: number
  x2: number
  isGone: boolean
}

/**
 * An index or exponent is smaller than its host, off its baseline, and touches it. The parts of the host on both sides are
 * joined afterwards.
 */
function attachScripts(pieces: readonly Span[][]): Span[][] {
  const hosts = pieces.map(hostOf).sort((a, b) => a.y - b.y)
  for (const [index, small] of hosts.entries()) {
    const host = neighbourOf(hosts, index, small)
    if (host === undefined) continue
    const script = small.y < host.y ? 'super' : 'sub'
    host.spans = host.spans.concat(small.spans.map((span) => ({ ...span, script })))
    host.x1 = Math.min(host.x1, small.x1)
    host.x2 = Math.max(host.x2, small.x2)
    small.isGone = true
    joinFollower(hosts, index, host)
  }
  return hosts.filter((host) => !host.isGone).map((host) => host.spans)
}

function hostOf(spans: Span[]): Host {
  const largest = spans.reduce((most, span) => (span.size > most.size ? span : most))
  const x2 = spans.reduce((most, span) => Math.max(most, span.x2), -Infinity)
  return { spans, y: largest.y, size: largest.size, x1: spans[0]?.x1 ?? 0, x2, isGone: false }
}

function neighbourOf(hosts: readonly Host[], index: number, small: Host): Host | undefined {
  return nearby(hosts, index, small.size * 1.6).find((host) => {
    if (host.isGone || small.size > host.size * SCRIPT_SIZE_RATIO) return false
    const rise = (host.y - small.y) / host.size
    const isOffBaseline = (rise > 0.1 && rise < 0.75) || (rise < -0.05 && rise > -0.45)
    const after = small.x1 - host.x2
    const isTouching = after > -small.size * 0.3 && after < host.size * 0.25
    const isInside = small.x1 > host.x1 && small.x2 < host.x2
    const isBeforeWord = rise > 0 && host.x1 - small.x2 > -1 && host.x1 - small.x2 < host.size * 0.25
    return isOffBaseline && (isTouching || isInside || isBeforeWord)
  })
}

function joinFollower(hosts: readonly Host[], index: number, host: Host): void {
  for (const other of nearby(hosts, index, host.size)) {
    if (other === host || other.isGone || Math.abs(other.y - host.y) > BASELINE_TOLERANCE_EM * host.size) continue
    const gap = other.x1 - host.x2
    if (gap < -host.size * 0.2 || gap > PIECE_GAP_EM * host.size) continue
    host.spans = host.spans.concat(other.spans)
    host.x2 = Math.max(host.x2, other.x2)
    other.isGone = true
  }
}

/** Most candidates on either side, so that a page of a hundred thousand one-letter pieces takes linear time. */
const MOST_NEIGHBOURS = 60

function nearby(hosts: readonly Host[], index: number, reach: number): Host[] {
  const y = hosts[index]?.y ?? 0
  const found: Host[] = []
  for (const step of [-1, 1]) {
    for (let at = index + step; Math.abs(at - index) <= MOST_NEIGHBOURS; at += step) {
      const host = hosts[at]
      if (host === undefined || Math.abs(host.y - y) > reach) break
      found.push(host)
    }
  }
  return found
}
