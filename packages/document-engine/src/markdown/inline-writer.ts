import { BOLD, type Inline, ITALIC, STRIKE } from './document-model.js'
import {
  escapeInline,
  firstCharacter,
  inlineCode,
  isBlank,
  isPunctuation,
  isWordCharacter,
  lastCharacter,
  leadingPunctuation,
  trailingPunctuation,
  urlReaches,
} from './escape-markdown.js'

/** Italic that overlaps bold: written as `_`, because `***` is ambiguous. */
const CROSSING_ITALIC = 8
const WRITTEN_MARKS: readonly number[] = [BOLD, ITALIC, CROSSING_ITALIC, STRIKE]

const SETTLED_MARKS: readonly number[] = [BOLD, ITALIC, STRIKE]
// Moving the end of one mark can change where another is interrupted; two rounds are enough in practice.
const MOST_ROUNDS = 6

/**
 * Moves the ends of emphasis to where CommonMark accepts a delimiter (left- and right-flanking runs): not beside a blank
 * inside, and not between punctuation inside and a letter outside. Emphasis without such a place is dropped.
 */
function settleMarks(pieces: readonly Inline[]): readonly Inline[] {
  if (pieces.every((piece) => piece.marks === 0)) return pieces
  let settled = pieces
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const before = settled
    for (const mark of SETTLED_MARKS) settled = mapRuns(settled, mark, settleRun)
    if (hasSameMarks(before, settled)) break
  }
  return joined(mapRuns(settled, ITALIC, settleCrossing))
}

/** Joins pieces with equal marks: escaping depends on the next character, and adjacent code spans would be read as one. */
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

/** End of a run with the mark: where the mark ends, or where an outer mark does. */
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
  // CommonMark does not accept `_` as a delimiter within a word.
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

// `~~` and `**` are punctuation to each other: with a letter on the other side neither is a delimiter.
function isCrossed(inner: Inline | undefined, outer: Inline | undefined, side: Side): boolean {
  if (inner === undefined || outer === undefined) return false
  return (inner.marks & ~outer.marks & ~STRIKE) !== 0 && isWordCharacter(edgeOf(outer, side))
}

type Side = 'start' | 'end'

/** Removes the mark at one side of a run until a delimiter is possible there; `stripped` is ordered from outside inwards. */
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

/** Splits off the blank, or else the blanks and punctuation, at one side of a text. */
function splitText(piece: TextPiece, side: Side, isBlankOnly: boolean): [TextPiece, TextPiece | undefined] {
  const { text } = piece
  const length = isBlankOnly ? 1 : side === 'start' ? leadingPunctuation(text) : trailingPunctuation(text)
  if (length >= text.length) return [piece, undefined]
  const cut = side === 'start' ? length : text.length - length
  const head = { ...piece, text: text.slice(0, cut) }
  const tail = { ...piece, text: text.slice(cut) }
  return side === 'start' ? [head, tail] : [tail, head]
}

/** Removes a mark; a link keeps it inside its brackets, where delimiters are always possible. */
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

const DELIMITERS: ReadonlyMap<number, string> = new Map([
  [BOLD, '**'],
  [ITALIC, '*'],
  [CROSSING_ITALIC, '_'],
  [STRIKE, '~~'],
])

// Stands for any delimiter beside a text: not a letter, not a blank; a tilde, so that tildes of the text are escaped.
const DELIMITER = '~'

/** Pieces of a paragraph as Markdown; a break is written as `lineBreak`. */
export function writeInline(pieces: readonly Inline[], lineBreak: string): string {
  return new InlineWriter(settleMarks(pieces), lineBreak, false).write()
}

class InlineWriter {
  private readonly out: string[] = []
  private readonly open: number[] = []

  constructor(
    private readonly pieces: readonly Inline[],
    private readonly lineBreak: string,
    private readonly isLinkText: boolean,
    /** Whether a bare URL reaches up to what is written next. */
    private isAfterUrl = false,
  ) {}

  write(): string {
    const ends = endsOfRuns(this.pieces)
    for (const [index, piece] of this.pieces.entries()) {
      this.closeAllBut(piece.marks)
      this.openMarks(piece.marks, ends[index] ?? [])
      const written = this.piece(piece, index)
      this.out.push(written)
      // Of a link too: a parser that does not see the link takes its address for a bare URL.
      this.isAfterUrl = urlReaches(written, this.isAfterUrl)
    }
    this.closeAllBut(0)
    return this.out.join('')
  }

  private closeAllBut(marks: number): void {
    const first = this.open.findIndex((mark) => (marks & mark) === 0)
    if (first < 0) return
    for (const mark of this.open.splice(first).reverse()) this.out.push(DELIMITERS.get(mark) ?? '')
  }

  // The mark with the longest run is opened first, so that it is not interrupted by another.
  private openMarks(marks: number, ends: readonly number[]): void {
    const missing = WRITTEN_MARKS.map((mark, order) => ({ mark, end: ends[order] ?? 0 }))
      .filter(({ mark }) => (marks & mark) !== 0 && !this.open.includes(mark))
      .sort((left, right) => right.end - left.end)
    for (const { mark } of missing) {
      this.out.push(DELIMITERS.get(mark) ?? '')
      this.open.push(mark)
    }
  }

  private piece(piece: Inline, index: number): string {
    switch (piece.kind) {
      case 'text':
        return this.text(piece, index)
      case 'code':
        return inlineCode(piece.text, { isAfterUrl: this.isAfterUrl, isLinkText: this.isLinkText })
      case 'raw':
        return piece.text
      case 'image':
        return this.image(piece)
      case 'link':
        return this.link(piece)
      case 'break':
        // A blank ends a bare URL.
        return this.isAfterUrl && this.lineBreak !== ' ' ? ` ${this.lineBreak}` : this.lineBreak
      case 'task':
        return ''
    }
  }

  private text({ text, marks }: Inline & { kind: 'text' }, index: number): string {
    const before = this.neighbour(index - 1, marks)
    const after = this.neighbour(index + 1, marks)
    const { isLinkText, isAfterUrl } = this
    const escaped = escapeInline(text, { before, after, isLinkText, isAfterUrl })
    return text.endsWith('!') && this.pieces[index + 1]?.kind === 'link' ? `${escaped.slice(0, -1)}\\!` : escaped
  }

  /** Character beside a text with these marks: a blank at the end of a line, otherwise a delimiter. */
  private neighbour(index: number, marks: number): string {
    const piece = this.pieces[index]
    const isEnd = !this.isLinkText && (piece === undefined || piece.kind === 'break')
    return isEnd && marks === 0 ? ' ' : DELIMITER
  }

  private image({ alt, url }: Extract<Inline, { kind: 'image' }>): string {
    const { isAfterUrl } = this
    return `![${escapeInline(alt, { before: ' ', after: ' ', isLinkText: true, isAfterUrl })}](${url})`
  }

  private link(link: Extract<Inline, { kind: 'link' }>): string {
    const [only] = link.content
    if (link.content.length === 1 && only?.kind === 'text' && only.marks === 0 && isAutolink(only.text, link.url))
      return `<${only.text}>`
    const content = new InlineWriter(settleMarks(link.content), ' ', true, this.isAfterUrl).write()
    return `[${content}](${link.url})`
  }
}

/** For each piece the index at which the run of each mark of `WRITTEN_MARKS` ends. */
function endsOfRuns(pieces: readonly Inline[]): (readonly number[])[] {
  const ends: (readonly number[])[] = []
  let next = WRITTEN_MARKS.map(() => pieces.length)
  for (let index = pieces.length - 1; index >= 0; index -= 1) {
    const marks = pieces[index]?.marks ?? 0
    next = next.map((end, order) => ((marks & (WRITTEN_MARKS[order] ?? 0)) === 0 ? index : end))
    ends[index] = next
  }
  return ends
}

function isAutolink(text: string, url: string): boolean {
  if (/[\s<>]/.test(text)) return false
  if (/^[a-z][a-z\d+.-]{1,31}:/i.test(text)) return text === url || `${text}/` === url
  return url === `mailto:${text}` && /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/.test(text)
}
