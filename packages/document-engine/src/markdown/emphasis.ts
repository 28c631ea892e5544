import {
  firstCharacter,
  isBlank,
  isPunctuation,
  isWordCharacter,
  lastCharacter,
  leadingPunctuation,
  trailingPunctuation,
} from './characters.js'
import { BOLD, type Inline, ITALIC, STRIKE } from './document-model.js'

/** Italic that crosses bold: written with a delimiter of its own, as `***` is read in more than one way. */
export const CROSSING_ITALIC = 8
export const WRITTEN_MARKS: readonly number[] = [BOLD, ITALIC, CROSSING_ITALIC, STRIKE]

const SETTLED_MARKS: readonly number[] = [BOLD, ITALIC, STRIKE]
// Moving the end of one mark can move where another is interrupted; in practice two rounds do.
const MOST_ROUNDS = 6

/**
 * Moves the ends of emphasis to where Markdown takes a delimiter for one (CommonMark, left- and right-flanking): not
 * beside a blank within, and not between punctuation within and a letter without. What cannot be had there is let go.
 */
export function settleMarks(pieces: readonly Inline[]): readonly Inline[] {
  if (pieces.every((piece) => piece.marks === 0)) return pieces
  let settled = pieces
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const before = settled
    for (const mark of SETTLED_MARKS) settled = mapRuns(settled, mark, settleRun)
    if (hasSameMarks(before, settled)) break
  }
  return joined(mapRuns(settled, ITALIC, settleCrossing))
}

/** Pieces that became alike as one: escaping looks at what follows, and code spans in a row would be one. */
function joined(pieces: readonly Inline[]): Inline[] {
  const out: Inline[] = []
  for (const piece of pieces) {
    const last = out.at(-1)
    const isText = piece.kind === 'text' && last?.kind === 'text'
    const isCode = piece.kind === 'code' && last?.kind === 'code'
    if ((isText || isCode) && last.marks === piece.marks)
      out[out.length - 1] = { ...last, text: last.text + piece.text }
    else out.push(piece)
  }
  return out
}

type RunMap = (run: readonly Inline[], mark: number, previous?: Inline, next?: Inline) => readonly Inline[]

function mapRuns(pieces: readonly Inline[], mark: number, map: RunMap): readonly Inline[] {
  if (pieces.every((piece) => (piece.marks & mark) === 0)) return pieces
  const out: Inline[] = []
  for (let index = 0; index < pieces.length;) {
    const piece = pieces[index]
    if (piece === undefined) break
    const end = map === settleCrossing ? endOfMark(pieces, index, mark) : endOfRun(pieces, index, mark)
    if (end === index) out.push(piece)
    else for (const mapped of map(pieces.slice(index, end), mark, out.at(-1), pieces[end])) out.push(mapped)
    index = Math.max(end, index + 1)
  }
  return out
}

function endOfMark(pieces: readonly Inline[], start: number, mark: number): number {
  let end = start
  while (((pieces[end]?.marks ?? 0) & mark) !== 0) end += 1
  return end
}

/** Where a mark ends, or is interrupted because another, which began before it, ends. */
function endOfRun(pieces: readonly Inline[], start: number, mark: number): number {
  const around = (pieces[start]?.marks ?? 0) & (pieces[start - 1]?.marks ?? 0) & ~mark
  let end = start
  for (let marks = pieces[end]?.marks ?? 0; (marks & mark) !== 0; marks = pieces[end]?.marks ?? 0) {
    if ((marks & around) !== around) break
    end += 1
  }
  return end
}

function hasSameMarks(before: readonly Inline[], after: readonly Inline[]): boolean {
  return before.length === after.length && before.every((piece, index) => piece.marks === after[index]?.marks)
}

function settleCrossing(run: readonly Inline[], mark: number, previous?: Inline, next?: Inline): readonly Inline[] {
  const isBoldAround = [previous, next].some((piece) => piece !== undefined && (piece.marks & BOLD) !== 0)
  const bold = run.filter((piece) => (piece.marks & BOLD) !== 0)
  if (bold.length === 0 || (bold.length === run.length && !isBoldAround)) return run
  const isWithinWord = isWordCharacter(outerEdge(previous, 'end')) || isWordCharacter(outerEdge(next, 'start'))
  // An underscore is no delimiter within a word.
  if (isWithinWord) return run.map((piece) => unmarked(piece, mark))
  return run.map((piece) => ({ ...piece, marks: (piece.marks & ~mark) | CROSSING_ITALIC }))
}

function settleRun(run: readonly Inline[], mark: number, previous?: Inline, next?: Inline): readonly Inline[] {
  if (mark === STRIKE && (isCrossed(run[0], previous, 'end') || isCrossed(run.at(-1), next, 'start')))
    return run.map((piece) => unmarked(piece, mark))
  const head = strip(run, mark, 'start', outerEdge(previous, 'end'))
  const tail = strip(head.rest, mark, 'end', outerEdge(next, 'start'))
  return [...head.stripped, ...tail.rest, ...tail.stripped.reverse()]
}

// Where `~~` stands next to `**`, each is punctuation to the other; with a letter on the far side neither is a delimiter.
function isCrossed(inner: Inline | undefined, outer: Inline | undefined, side: Side): boolean {
  if (inner === undefined || outer === undefined) return false
  return (inner.marks & ~outer.marks & ~STRIKE) !== 0 && isWordCharacter(edgeOf(outer, side))
}

type Side = 'start' | 'end'

/** Takes the mark from pieces at one side of a run until a delimiter may stand there; `stripped` from outside inwards. */
function strip(run: readonly Inline[], mark: number, side: Side, neighbour: string) {
  const stripped: Inline[] = []
  let outer = neighbour
  let taken = 0
  let partial: Inline | undefined
  while (taken < run.length) {
    const piece = partial ?? run[side === 'start' ? taken : run.length - 1 - taken]
    if (piece === undefined) break
    const edge = edgeOf(piece, side)
    if (!isBlank(edge) && (isBlank(outer) || isPunctuation(outer) || !isPunctuation(edge))) break
    const [off, rest] = piece.kind === 'text' ? splitText(piece, side, isBlank(edge)) : [piece, undefined]
    stripped.push(unmarked(off, mark))
    outer = edgeOf(off, side === 'start' ? 'end' : 'start')
    partial = rest
    if (rest === undefined) taken += 1
  }
  const kept = side === 'start' ? run.slice(taken) : run.slice(0, run.length - taken)
  if (partial !== undefined) kept[side === 'start' ? 0 : kept.length - 1] = partial
  return { stripped, rest: kept }
}

type TextPiece = Extract<Inline, { kind: 'text' }>

/** The blank, or else the blanks and punctuation, at one side of a text, and what is left of it. */
function splitText(piece: TextPiece, side: Side, isBlankOnly: boolean): [TextPiece, TextPiece | undefined] {
  const { text } = piece
  const length = isBlankOnly ? 1 : side === 'start' ? leadingPunctuation(text) : trailingPunctuation(text)
  if (length >= text.length) return [piece, undefined]
  const cut = side === 'start' ? length : text.length - length
  const head = { ...piece, text: text.slice(0, cut) }
  const tail = { ...piece, text: text.slice(cut) }
  return side === 'start' ? [head, tail] : [tail, head]
}

/** A link keeps the mark within its brackets, where it always holds. */
function unmarked(piece: Inline, mark: number): Inline {
  const marks = piece.marks & ~mark
  if (piece.kind !== 'link') return { ...piece, marks }
  return { ...piece, marks, content: piece.content.map((inner) => ({ ...inner, marks: inner.marks | mark })) }
}

function outerEdge(piece: Inline | undefined, side: Side): string {
  return piece === undefined ? '' : edgeOf(piece, side)
}

function edgeOf(piece: Inline, side: Side): string {
  if (piece.kind === 'break') return ''
  if (piece.kind !== 'text') return '`'
  return side === 'start' ? firstCharacter(piece.text) : lastCharacter(piece.text)
}
