import { type Inline } from './document-model.js'

/**
 * The paragraphs of what was read in one go: single blanks only, none beside breaks and at the ends, blanks moved out of
 * links, two breaks in a row taken for the end of a paragraph, nothing that shows nothing.
 */
export function tidyParagraphs(pieces: readonly Inline[]): Inline[][] {
  const collector = new InlineCollector()
  for (const piece of pieces) collector.add(piece)
  const paragraphs: Inline[][] = [[]]
  let breaks: Inline[] = []
  for (const piece of collector.take()) {
    if (piece.kind === 'break') {
      breaks.push(piece)
      continue
    }
    const current = paragraphs.at(-1)
    if (current === undefined || breaks.length > 1) paragraphs.push([piece])
    else current.push(...breaks, piece)
    breaks = []
  }
  return paragraphs.map(withoutLeadingBreak).filter((paragraph) => paragraph.some(isVisible))
}

/** The same for a place that has one line only: breaks are blanks. */
export function tidyLine(pieces: readonly Inline[]): Inline[] {
  const collector = new InlineCollector()
  for (const piece of pieces) collector.add(piece.kind === 'break' ? blank(piece.marks) : piece)
  const line = collector.take()
  return line.some(isVisible) ? line : []
}

export function isVisible(piece: Inline): boolean {
  return piece.kind !== 'break' && piece.kind !== 'task' && !(piece.kind === 'text' && piece.text.trim() === '')
}

/** Whether all that shows carries the mark. */
export function isWholly(pieces: readonly Inline[], mark: number): boolean {
  return pieces.every(
    (piece) =>
      !isVisible(piece) || (piece.marks & mark) !== 0 || (piece.kind === 'link' && isWholly(piece.content, mark)),
  )
}

export function withoutMark(pieces: readonly Inline[], mark: number): Inline[] {
  return pieces.map((piece) => {
    const marks = piece.marks & ~mark
    return piece.kind === 'link' ? { ...piece, marks, content: withoutMark(piece.content, mark) } : { ...piece, marks }
  })
}

export function withMark(pieces: readonly Inline[], mark: number): Inline[] {
  return pieces.map((piece) => (piece.kind === 'code' ? piece : { ...piece, marks: piece.marks | mark }))
}

export function blank(marks: number): Inline {
  return { kind: 'text', text: ' ', marks }
}

function withoutLeadingBreak(pieces: Inline[]): Inline[] {
  return pieces[0]?.kind === 'break' ? pieces.slice(1) : pieces
}

class InlineCollector {
  private readonly pieces: Inline[] = []
  private endsBlank: boolean

  constructor(startsAfterBlank = true) {
    this.endsBlank = startsAfterBlank
  }

  add(piece: Inline): void {
    if (piece.kind === 'text') this.addText(piece.text, piece.marks)
    else if (piece.kind === 'link') this.addLink(piece)
    // A box means something before the text of an item only.
    else if (piece.kind === 'task') this.pieces.push(...(this.pieces.length === 0 ? [piece] : []))
    else if (piece.kind === 'break') {
      this.dropTrailingBlank()
      this.pieces.push(piece)
      this.endsBlank = true
    } else {
      const last = this.pieces.at(-1)
      // Two code spans in a row would be one with backticks in it.
      if (piece.kind === 'code' && last?.kind === 'code' && last.marks === piece.marks)
        this.pieces[this.pieces.length - 1] = { ...piece, text: last.text + piece.text }
      else this.pieces.push(piece)
      this.endsBlank = false
    }
  }

  take(): Inline[] {
    if (this.endsBlank) this.dropTrailingBlank()
    while (this.pieces.at(-1)?.kind === 'break') this.pieces.pop()
    return this.pieces
  }

  private addText(text: string, marks: number): void {
    const rest = this.endsBlank && text.startsWith(' ') ? text.slice(1) : text
    if (rest === '') return
    const last = this.pieces.at(-1)
    if (last?.kind === 'text' && last.marks === marks)
      this.pieces[this.pieces.length - 1] = { kind: 'text', text: last.text + rest, marks }
    else this.pieces.push({ kind: 'text', text: rest, marks })
    this.endsBlank = rest.endsWith(' ')
  }

  private addLink(link: Extract<Inline, { kind: 'link' }>): void {
    const inner = new InlineCollector(this.endsBlank)
    for (const piece of link.content) inner.add(piece.kind === 'break' ? blank(piece.marks) : piece)
    const first = inner.pieces[0]
    if (first?.kind === 'text' && first.text.startsWith(' ')) {
      this.addText(' ', link.marks)
      if (first.text === ' ') inner.pieces.shift()
      else inner.pieces[0] = { ...first, text: first.text.slice(1) }
    }
    const endsBlank = inner.endsBlank && inner.pieces.length > 0
    const content = inner.take()
    if (!content.some(isVisible)) return
    this.pieces.push({ ...link, content })
    this.endsBlank = false
    if (endsBlank) this.addText(' ', link.marks)
  }

  private dropTrailingBlank(): void {
    const last = this.pieces.at(-1)
    if (last?.kind !== 'text' || !last.text.endsWith(' ')) return
    if (last.text === ' ') this.pieces.pop()
    else this.pieces[this.pieces.length - 1] = { ...last, text: last.text.slice(0, -1) }
    this.endsBlank = false
  }
}
