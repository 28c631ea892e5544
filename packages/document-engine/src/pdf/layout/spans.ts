import type { LinkArea, PdfPage, Span, TextRun } from './layout-model.js'

const LEAST_SIZE_RATIO = 1.8
const MOST_LINES = 6
/** Most large single letters of a page of prose. */
const MOST_CAPS = 20

/** Joins a drop cap to the word that it begins. */
export function withoutDropCaps(spans: readonly Span[]): Span[] {
  let all = [...spans]
  const caps = all.filter((span) => /^[“"'«]?\p{Lu}$/u.test(span.text.trim()))
  const size = usualSize(all)
  for (const cap of caps.filter((span) => span.size >= size * LEAST_SIZE_RATIO).slice(0, MOST_CAPS)) {
    const beside = all.filter((span) => isBeside(span, cap, size)).sort((a, b) => a.y - b.y)
    const [first] = beside
    if (first === undefined || beside.length < 2 || beside.length > MOST_LINES) continue
    if (Math.abs(first.y - first.size - (cap.y - cap.size)) > cap.size * 0.5) continue
    const others = new Set(beside.slice(1))
    all = all.map((span) => {
      if (span === cap) return { ...first, text: cap.text.trim(), x1: cap.x1, x2: first.x1 }
      return others.has(span) ? { ...span, x1: cap.x1 } : span
    })
  }
  return all
}

/** The first pieces of the lines beside the letter. */
function isBeside(span: Span, cap: Span, size: number): boolean {
  const gap = span.x1 - cap.x2
  const isNext = gap > -2 && gap < span.size * 1.2 && span.size < size * 1.3
  return span !== cap && isNext && span.y > cap.y - cap.size && span.y <= cap.y + span.size * 0.3
}

/** The size of most characters. */
export function usualSize(spans: readonly Span[]): number {
  const charactersBySize = new Map<number, number>()
  let best = spans[0]?.size ?? 0
  for (const span of spans) {
    const characters = (charactersBySize.get(span.size) ?? 0) + span.text.length
    charactersBySize.set(span.size, characters)
    if (characters > (charactersBySize.get(best) ?? 0)) best = span.size
  }
  return best
}

/** Finds the words of a run that an area covers; only the width of the whole run is known. */
class TextRuler {
  /** Ends of the characters, as shares of the width. */
  private readonly ends: Float64Array

  constructor(private readonly run: TextRun) {
    this.ends = new Float64Array(run.text.length)
    let sum = 0
    for (let at = 0; at < run.text.length; at += 1) {
      sum += run.isFixedPitch ? 1 : relativeWidth(run.text[at] ?? '')
      this.ends[at] = sum
    }
  }

  /** Index of the first character of an area that begins at `x`; moved to the start of a word if one is near. */
  startAt(x: number): number {
    return this.nearestEdge(x, (before, after) => /[\s(["“‘/]/.test(before) && /\S/.test(after))
  }

  /** Index behind the last character of an area that ends at `x`; moved to the end of a word if one is near. */
  endAt(x: number): number {
    return this.nearestEdge(x, (before, after) => /\S/.test(before) && /[\s\p{P}]/u.test(after))
  }

  private nearestEdge(x: number, isEdge: (before: string, after: string) => boolean): number {
    const { text } = this.run
    const exact = this.charactersUntil(x)
    if (exact <= 0.6) return 0
    if (exact >= text.length - 0.6) return text.length
    const reach = Math.min(8, 2 + text.length * 0.04)
    let best = Math.round(exact)
    let bestDistance = Infinity
    for (let at = Math.max(1, Math.floor(exact - reach)); at <= Math.min(text.length - 1, exact + reach); at += 1) {
      const distance = Math.abs(at - exact)
      if (distance < bestDistance && isEdge(text[at - 1] ?? '', text[at] ?? '')) [best, bestDistance] = [at, distance]
    }
    return best
  }

  /** Number of characters left of `x`, with fractions. */
  private charactersUntil(x: number): number {
    const { run, ends } = this
    const target = run.width <= 0 ? 0 : ((x - run.x) / run.width) * (ends.at(-1) ?? 0)
    let low = 0
    let high = ends.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((ends[middle] ?? Infinity) < target) low = middle + 1
      else high = middle
    }
    const start = ends[low - 1] ?? 0
    const end = ends[low] ?? start
    return end > start ? low + Math.max(0, target - start) / (end - start) : low
  }
}

/** Width of a character relative to the mean, roughly as in most proportional fonts. */
function relativeWidth(character: string): number {
  if (/[iljtfrI.,;:'|!()[\]\s-]/.test(character)) return 0.55
  if (/[mwMW@%—…]/.test(character)) return 1.5
  return /[A-Z]/.test(character) ? 1.25 : 1
}

const SLICE_HEIGHT = 24
/** Most links that are examined for a run; some pages have thousands. */
const MOST_LINKS_PER_SLICE = 100

/** Runs as spans, cut where a link begins or ends. Links cover whole words: a cut moves to the nearest blank. */
export function spansOf(page: PdfPage): Span[] {
  const slices = linksBySlice(page.links)
  const spans: Span[] = []
  for (const run of page.runs) {
    const links = slices.get(sliceOf(run.y - run.fontSize * 0.3))
    if (links === undefined) spans.push(spanOf(run, run.text, 0, run.text.length, ''))
    else spans.push(...linkedSpans(run, links))
  }
  return spans
}

function sliceOf(y: number): number {
  return Math.floor(y / SLICE_HEIGHT)
}

function linksBySlice(links: readonly LinkArea[]): Map<number, LinkArea[]> {
  const slices = new Map<number, LinkArea[]>()
  for (const link of links) {
    const first = sliceOf(link.y)
    const last = Math.min(sliceOf(link.y + link.height), first + 100)
    for (let slice = first; slice <= last; slice += 1) {
      const known = slices.get(slice)
      if (known === undefined) slices.set(slice, [link])
      else if (known.length < MOST_LINKS_PER_SLICE) known.push(link)
    }
  }
  return slices
}

function linkedSpans(run: TextRun, links: readonly LinkArea[]): Span[] {
  const middle = run.y - run.fontSize * 0.3
  const over = links.filter(
    (link) =>
      middle >= link.y && middle <= link.y + link.height && link.x < run.x + run.width && link.x + link.width > run.x,
  )
  if (over.length === 0) return [spanOf(run, run.text, 0, run.text.length, '')]
  const ruler = new TextRuler(run)
  const parts = over
    .map((link) => ({ from: ruler.startAt(link.x), to: ruler.endAt(link.x + link.width), url: link.url }))
    .sort((a, b) => a.from - b.from)
  const spans: Span[] = []
  let done = 0
  for (const part of parts) {
    const from = Math.max(part.from, done)
    if (part.to <= from) continue
    if (from > done) spans.push(spanOf(run, run.text, done, from, ''))
    spans.push(spanOf(run, run.text, from, part.to, part.url))
    done = part.to
  }
  if (done < run.text.length) spans.push(spanOf(run, run.text, done, run.text.length, ''))
  return spans.filter((span) => span.text.trim() !== '')
}

function spanOf(run: TextRun, text: string, from: number, to: number, url: string): Span {
  const perCharacter = run.width / Math.max(1, text.length)
  return {
    text: text.slice(from, to),
    x1: run.x + from * perCharacter,
    x2: run.x + to * perCharacter,
    y: run.y,
    size: run.fontSize,
    font: run.font,
    isBold: run.isBold,
    isItalic: run.isItalic,
    isFixedPitch: run.isFixedPitch,
    url,
    script: 'base',
    hasBlankBefore: false,
    contentId: run.contentId,
  }
}
