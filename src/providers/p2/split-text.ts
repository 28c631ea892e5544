/** Where a text may be parted, the best kind first; each position lies behind the mark and the white space after it. */
interface Borders {
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
function lastBorders(text: string, from: number, to: number): Borders {
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

/** What the upstream takes in one synthesis, in bytes of UTF-8. */
const MAXIMUM_BYTES = 1024
/** A code point that is never parted takes up to so many bytes. */
const LONGEST_CHARACTER_BYTES = 4
const SPEAKABLE = /[\p{L}\p{N}\p{Sc}]/u

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' })

/** Whether a text holds a letter, a number or a currency sign: something to say. The upstream refuses all else. */
export function isSpeakable(piece: string): boolean {
  return SPEAKABLE.test(piece)
}

/**
 * Parts a text into pieces of at most `maximumBytes` bytes of UTF-8 (a lone surrogate counts as U+FFFD: 3 bytes) that
 * joined are the text. Each piece is as long as it can be and yet end with a sentence, otherwise with a clause, a
 * word, a grapheme cluster, a code point. A piece without anything to say comes only from a text that says nothing for
 * about as long as a piece. Takes linear time. Throws a RangeError for a maximum below 4.
 */
export function textPieces(text: string, maximumBytes = MAXIMUM_BYTES): string[] {
  if (!(maximumBytes >= LONGEST_CHARACTER_BYTES)) throw new RangeError('A piece must have room for any character.')
  const lastSpoken = lastSpokenStart(text)
  const pieces: string[] = []
  for (let start = 0; start < text.length;) {
    const end = nextCut(text, start, maximumBytes, lastSpoken)
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

function nextCut(text: string, start: number, maximumBytes: number, lastSpoken: number): number {
  const limit = fittingEnd(text, start, maximumBytes)
  if (limit === text.length) return limit
  const spoken = firstSpokenEnd(text, start, limit)
  if (spoken === undefined) return graphemeBorder(text, start, limit) ?? limit
  const cut = bestCut(text, start, spoken, limit) ?? limit
  if (cut <= lastSpoken || lastSpoken < spoken) return cut
  // Only punctuation or white space would be left over: a word goes along with it, if both fit into the last piece.
  const earlier = bestCut(text, start, spoken, lastSpoken)
  const isBetter = earlier !== undefined && earlier >= spoken && fittingEnd(text, earlier, maximumBytes) === text.length
  return isBetter ? earlier : cut
}

/** The best border up to `limit`: of a sentence, a clause or a word behind `spoken`, otherwise of a grapheme cluster. */
function bestCut(text: string, start: number, spoken: number, limit: number): number | undefined {
  const { sentence, clause, space } = lastBorders(text, spoken - 1, limit)
  for (const border of [sentence, clause, space]) {
    // A mark or a space with a combining character behind it is no end of anything.
    if (border !== undefined && graphemeBorder(text, start, border) === border) return border
  }
  return graphemeBorder(text, start, limit)
}

/** The last border between grapheme clusters in (start, limit]; undefined where one cluster fills the range. */
function graphemeBorder(text: string, start: number, limit: number): number | undefined {
  // Which cluster a character belongs to depends on what precedes it and on the one code point behind it.
  const segments = graphemes.segment(text.slice(start, limit + 2))
  const length = segments.containing(limit - start)?.index ?? limit - start
  return length === 0 ? undefined : start + length
}

/** The end of the first code point in [start, limit) that can be spoken. */
function firstSpokenEnd(text: string, start: number, limit: number): number | undefined {
  const found = SPEAKABLE.exec(text.slice(start, limit))
  return found === null ? undefined : start + found.index + found[0].length
}

/** The position of the last code point that can be spoken, -1 for none. */
function lastSpokenStart(text: string): number {
  let position = text.length - 1
  while (position >= 0 && !isSpeakable(String.fromCodePoint(text.codePointAt(position) ?? 0))) position--
  return position
}

/** The position of the first code point behind `start` that no longer fits. */
function fittingEnd(text: string, start: number, maximumBytes: number): number {
  let bytes = 0
  let position = start
  while (position < text.length) {
    const codePoint = text.codePointAt(position) ?? 0
    bytes += utf8Bytes(codePoint)
    if (bytes > maximumBytes) break
    position += unitsOf(codePoint)
  }
  return position
}

function utf8Bytes(codePoint: number): number {
  if (codePoint < 0x80) return 1
  if (codePoint < 0x800) return 2
  return codePoint < 0x10000 ? 3 : LONGEST_CHARACTER_BYTES
}

const unitsOf = (codePoint: number): number => (codePoint < 0x10000 ? 1 : 2)
