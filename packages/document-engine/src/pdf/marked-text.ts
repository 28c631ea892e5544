import type { MarkedStretch } from './content-stream.js'
import type { PlacedText } from './text-place.js'

/** Points, around a stretch. */
const TOLERANCE = 1
/** A page shows its text when it shows that much for each character it hides; else the hidden text is that of a scan. */
const SHOWN_FOR_EACH_HIDDEN = 0.5

/** No line has more words; the search along a line stays short. */
const MAX_STRETCHES_OF_LEVEL = 500

/**
 * Leaves out the text of layers that are switched off (unless there is no other), and invisible text beside visible text; text that is invisible
 * on a page of pictures is what a scanner read, and stays. Text that is stroked as well as filled comes back as bold.
 */
export function shownText(texts: readonly PlacedText[], stretches: readonly MarkedStretch[]): PlacedText[] {
  if (stretches.length === 0) return [...texts]
  const marks = new StretchIndex(stretches)
  const seen = texts.filter((text) => !marks.has(text, 'hidden'))
  const layered = seen.length > 0 ? seen : texts
  const visible = layered.filter((text) => !marks.has(text, 'invisible'))
  const isScan = characters(visible) < SHOWN_FOR_EACH_HIDDEN * (characters(layered) - characters(visible))
  return (isScan ? layered : visible).map((text) => ({ ...text, isDrawnBold: marks.has(text, 'stroked') }))
}

function characters(texts: readonly PlacedText[]): number {
  return texts.reduce((sum, { text }) => sum + text.length, 0)
}

class StretchIndex {
  private readonly byLevel = new Map<number, MarkedStretch[]>()

  constructor(stretches: readonly MarkedStretch[]) {
    for (const stretch of stretches) {
      const level = Math.round(stretch.y)
      const others = this.byLevel.get(level) ?? []
      if (others.length < MAX_STRETCHES_OF_LEVEL) others.push(stretch)
      this.byLevel.set(level, others)
    }
  }

  has({ x, y }: PlacedText, kind: MarkedStretch['kind']): boolean {
    return [-1, 0, 1].some((shift) =>
      (this.byLevel.get(Math.round(y) + shift) ?? []).some(
        (stretch) =>
          stretch.kind === kind &&
          Math.abs(stretch.y - y) <= TOLERANCE &&
          x >= stretch.x1 - TOLERANCE &&
          x <= stretch.x2 + TOLERANCE,
      ),
    )
  }
}
