import type { Span } from './layout-model.js'

const LEAST_SIZE_RATIO = 1.8
const MOST_LINES = 6
/** A page with more large single letters is no page of prose. */
const MOST_CAPS = 20

/** Puts the large first letter of a chapter back in front of the word it begins. */
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

/** The first pieces of the lines that stand next to the letter. */
function isBeside(span: Span, cap: Span, size: number): boolean {
  const gap = span.x1 - cap.x2
  const isNext = gap > -2 && gap < span.size * 1.2 && span.size < size * 1.3
  return span !== cap && isNext && span.y > cap.y - cap.size && span.y <= cap.y + span.size * 0.3
}

function usualSize(spans: readonly Span[]): number {
  const charactersBySize = new Map<number, number>()
  let best = 0
  for (const span of spans) {
    const characters = (charactersBySize.get(span.size) ?? 0) + span.text.length
    charactersBySize.set(span.size, characters)
    if (characters > (charactersBySize.get(best) ?? 0)) best = span.size
  }
  return best
}
