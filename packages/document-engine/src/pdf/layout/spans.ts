import type { Span } from './layout-model.js'
import type { LinkArea, PdfPage, TextRun } from './pdf-page.js'
import { TextRuler } from './text-ruler.js'

const SLICE_HEIGHT = 24
/** A drawn picture of text may be cut into absurd numbers of links; each run looks at this many at most. */
const MOST_LINKS_PER_SLICE = 100

/** Runs as spans, cut where a link begins or ends. Links stand on words: a cut moves to the nearest blank. */
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
  }
}
