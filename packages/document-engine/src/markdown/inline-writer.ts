import { firstCharacter, lastCharacter } from './characters.js'
import { BOLD, type Inline, ITALIC, STRIKE } from './document-model.js'
import { CROSSING_ITALIC, settleMarks, WRITTEN_MARKS } from './emphasis.js'
import { escapeInline } from './escape-markdown.js'

const DELIMITERS: ReadonlyMap<number, string> = new Map([
  [BOLD, '**'],
  [ITALIC, '*'],
  [CROSSING_ITALIC, '_'],
  [STRIKE, '~~'],
])

// Any delimiter: no letter, no blank, and no tilde that could be added to stands beside the text.
const DELIMITER = '~'

/** Pieces of a paragraph as Markdown; `lineBreak` is what stands for a break. */
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
  ) {}

  write(): string {
    const ends = endsOfRuns(this.pieces)
    for (const [index, piece] of this.pieces.entries()) {
      this.closeAllBut(piece.marks)
      this.openMarks(piece.marks, ends[index] ?? [])
      this.out.push(this.piece(piece, index))
    }
    this.closeAllBut(0)
    return this.out.join('')
  }

  private closeAllBut(marks: number): void {
    const first = this.open.findIndex((mark) => (marks & mark) === 0)
    if (first < 0) return
    for (const mark of this.open.splice(first).reverse()) this.out.push(DELIMITERS.get(mark) ?? '')
  }

  // The mark that reaches furthest is opened first, so that it need not be closed for the sake of another.
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
        return codeSpan(piece.text)
      case 'raw':
        return piece.text
      case 'image':
        return `![${escapeInline(piece.alt, { before: ' ', after: ' ', isLinkText: true })}](${piece.url})`
      case 'link':
        return this.link(piece)
      case 'break':
        return this.lineBreak
      case 'task':
        return ''
    }
  }

  private text({ text, marks }: Inline & { kind: 'text' }, index: number): string {
    const before = this.neighbour(index - 1, marks)
    const after = this.neighbour(index + 1, marks)
    const escaped = escapeInline(text, { before, after, isLinkText: this.isLinkText })
    return text.endsWith('!') && this.pieces[index + 1]?.kind === 'link' ? `${escaped.slice(0, -1)}\\!` : escaped
  }

  /** What stands beside a text with these marks: a blank where a line ends, otherwise a delimiter. */
  private neighbour(index: number, marks: number): string {
    const piece = this.pieces[index]
    const isEnd = !this.isLinkText && (piece === undefined || piece.kind === 'break')
    return isEnd && marks === 0 ? ' ' : DELIMITER
  }

  private link(link: Extract<Inline, { kind: 'link' }>): string {
    const [only] = link.content
    if (link.content.length === 1 && only?.kind === 'text' && only.marks === 0 && isAutolink(only.text, link.url))
      return `<${only.text}>`
    const content = new InlineWriter(settleMarks(link.content), ' ', true).write()
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

/** A code span with a fence that its text does not hold. */
export function codeSpan(text: string): string {
  const runs = new Set(text.match(/`+/g) ?? [])
  let fence = '`'
  while (runs.has(fence)) fence += '`'
  const padding = firstCharacter(text) === '`' || lastCharacter(text) === '`' ? ' ' : ''
  return `${fence}${padding}${text}${padding}${fence}`
}

function isAutolink(text: string, url: string): boolean {
  if (/[\s<>]/.test(text)) return false
  if (/^[a-z][a-z\d+.-]{1,31}:/i.test(text)) return text === url || `${text}/` === url
  return url === `mailto:${text}` && /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/.test(text)
}
