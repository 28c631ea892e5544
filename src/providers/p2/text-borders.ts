/** Where a text may be parted, the best kind first; each position lies behind the mark and the white space after it. */
export interface Borders {
  readonly sentence?: number
  readonly clause?: number
  readonly space?: number
}

type Mark = 'sentence' | 'clause'

/** ASCII marks also stand inside numbers, times and names (3.14, 12:30, gpt.js), where no white space follows. */
const SPACED_MARKS: ReadonlyMap<string, Mark> = marks('.!?', ',;:')
const OTHER_MARKS: ReadonlyMap<string, Mark> = marks('…。！？；｡', '，、：､—')
const CLOSERS = new Set(')]}"\'’”»›）］｝」』】〉》〕｣')
const LINE_ENDS = new Set('\n\r\u2028\u2029\u0085')
/** White space, but for the three that forbid a break. */
const BREAKING_SPACE = /[^\S\u00a0\u202f\ufeff]/

/** A run of marks and closers (`?!”`) and then white space: one border, of the best kind in it. */
interface Run {
  readonly mark: Mark
  readonly needsSpace: boolean
}

/**
 * The last border of each kind in `text` that lies in (from, to], found in one pass over that range. The character at
 * `to` is looked at, because a border parts neither a run nor white space.
 */
export function lastBorders(text: string, from: number, to: number): Borders {
  const borders: { sentence?: number; clause?: number; space?: number } = {}
  let run: Run | undefined
  let isSpaced = false
  for (let position = from; position < to; position++) {
    const character = text.charAt(position)
    const next = text.charAt(position + 1)
    if (isSpace(character)) {
      isSpaced = true
      if (LINE_ENDS.has(character)) run = { mark: 'sentence', needsSpace: false }
      if (isSpace(next)) continue
      borders.space = position + 1
      if (run !== undefined) borders[run.mark] = position + 1
    } else {
      // Behind white space a quotation mark opens, and a mark begins a run of its own.
      run = extended(isSpaced ? undefined : run, character)
      isSpaced = false
      if (run?.needsSpace === false && !continuesRun(next)) borders[run.mark] = position + 1
    }
  }
  return borders
}

function extended(run: Run | undefined, character: string): Run | undefined {
  if (CLOSERS.has(character)) return run
  const spaced = SPACED_MARKS.get(character)
  const mark = spaced ?? OTHER_MARKS.get(character)
  if (mark === undefined) return undefined
  const needsSpace = spaced !== undefined && run?.needsSpace !== false
  return { mark: run?.mark === 'sentence' ? 'sentence' : mark, needsSpace }
}

function continuesRun(next: string): boolean {
  return isSpace(next) || CLOSERS.has(next) || SPACED_MARKS.has(next) || OTHER_MARKS.has(next)
}

function isSpace(character: string): boolean {
  return BREAKING_SPACE.test(character)
}

function marks(sentence: string, clause: string): ReadonlyMap<string, Mark> {
  return new Map<string, Mark>([
    ...Array.from(sentence, (mark) => [mark, 'sentence'] as const),
    ...Array.from(clause, (mark) => [mark, 'clause'] as const),
  ])
}
