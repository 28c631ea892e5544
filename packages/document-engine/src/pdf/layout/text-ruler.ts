import type { TextRun } from './pdf-page.js'

/** Finds the words of a run that an area covers; the run tells only its whole width. */
export class TextRuler {
  /** Ends of the characters, in shares of the width. */
  private readonly ends: Float64Array

  constructor(private readonly run: TextRun) {
    this.ends = new Float64Array(run.text.length)
    let sum = 0
    for (let at = 0; at < run.text.length; at += 1) {
      sum += run.isFixedPitch ? 1 : relativeWidth(run.text[at] ?? '')
      this.ends[at] = sum
    }
  }

  /** Index of the character an area begins with that begins at `x`: the start of a word, when one is near. */
  startAt(x: number): number {
    return this.nearestEdge(x, (before, after) => /[\s(["“‘/]/.test(before) && /\S/.test(after))
  }

  /** Index behind the last character of an area that ends at `x`: the end of a word, when one is near. */
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

  /** Left of `x`, with fractions. */
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

/** Roughly, as most proportional fonts have it. */
function relativeWidth(character: string): number {
  if (/[iljtfrI.,;:'|!()[\]\s-]/.test(character)) return 0.55
  if (/[mwMW@%—…]/.test(character)) return 1.5
  return /[A-Z]/.test(character) ? 1.25 : 1
}
