export const BOLD = 1
export const ITALIC = 2
export const STRIKE = 4

/** Inline content; `marks` is a sum of the constants above. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string; readonly marks: number }
  | { readonly kind: 'code'; readonly text: string; readonly marks: number }
  /** Finished Markdown: a formula, or a `<sub>` or `<sup>` tag. */
  | { readonly kind: 'raw'; readonly text: string; readonly marks: number }
  | { readonly kind: 'image'; readonly alt: string; readonly url: string; readonly marks: number }
  | { readonly kind: 'link'; readonly url: string; readonly content: readonly Inline[]; readonly marks: number }
  | { readonly kind: 'break'; readonly marks: number }
  /** Checkbox of a task list item. */
  | { readonly kind: 'task'; readonly isDone: boolean; readonly marks: number }

export type Block =
  | { readonly kind: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly kind: 'heading'; readonly level: number; readonly content: readonly Inline[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'math'; readonly tex: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | ListBlock
  | TableBlock
  | { readonly kind: 'rule' }

export interface ListBlock {
  readonly kind: 'list'
  readonly isOrdered: boolean
  /** Number of the first item. */
  readonly start: number
  /** Mutable: items of lists that continue this one are appended. */
  readonly items: ListItem[]
}

export interface ListItem {
  readonly task: 'none' | 'open' | 'done'
  readonly blocks: Block[]
}

export interface TableBlock {
  readonly kind: 'table'
  readonly caption: readonly Inline[]
  readonly rows: readonly TableRow[]
}

export interface TableRow {
  readonly isHeader: boolean
  readonly cells: readonly TableCell[]
}

export interface TableCell {
  readonly blocks: readonly Block[]
  readonly columns: number
  readonly rows: number
  readonly alignment: '' | 'left' | 'center' | 'right'
}

/**
 * Normalised paragraphs: blanks are collapsed, trimmed beside breaks and at the ends, and moved out of links; two breaks
 * in a row end a paragraph; paragraphs without visible content are left out.
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

/** The same for a single line: breaks become blanks. */
export function tidyLine(pieces: readonly Inline[]): Inline[] {
  const collector = new InlineCollector()
  for (const piece of pieces) collector.add(piece.kind === 'break' ? blank(piece.marks) : piece)
  const line = collector.take()
  return line.some(isVisible) ? line : []
}

export function isVisible(piece: Inline): boolean {
  return piece.kind !== 'break' && piece.kind !== 'task' && !(piece.kind === 'text' && piece.text.trim() === '')
}

/** Whether all visible content has the mark. */
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
    // A checkbox makes a task only in front of the text of an item.
    else if (piece.kind === 'task') this.pieces.push(...(this.pieces.length === 0 ? [piece] : []))
    else if (piece.kind === 'break') {
      this.dropTrailingBlank()
      this.pieces.push(piece)
      this.endsBlank = true
    } else {
      const last = this.pieces.at(-1)
      // Adjacent code spans would be read as one, with backticks in it.
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
