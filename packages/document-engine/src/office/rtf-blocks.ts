import { withBox } from './html-pieces.js'
import { noteLabel } from '../markdown/footnote-marks.js'

/** Properties of a paragraph; `pard` sets them back. */
export interface ParagraphFormat {
  readonly isInTable: boolean
  /** Heading level, from 1; 0 for text. */
  readonly heading: number
  /** Level in a list, from 0; undefined outside of lists. */
  readonly listLevel: number | undefined
  /** In twips; a first line that hangs is negative. */
  readonly indent: number
  readonly firstIndent: number
}

export const PLAIN_PARAGRAPH: ParagraphFormat = {
  isInTable: false,
  heading: 0,
  listLevel: undefined,
  indent: 0,
  firstIndent: 0,
}

/** Most levels of lists. */
const DEEPEST_LEVEL = 8

/** Puts paragraphs, items and rows together to HTML. */
export class RtfBlocks {
  private readonly html: string[] = []
  private readonly openLists: ('ol' | 'ul')[] = []
  private code: string[] = []
  private cell: string[] = []
  private cells: string[] = []
  private rows: string[] = []
  private indents: number[] = []
  private readonly notes: string[] = []

  /** @param marker text of the bullet or number in front of an item; '' without one */
  addParagraph(content: string, format: ParagraphFormat, marker: string, isCode: boolean): void {
    const plain = format.heading > 0 ? content.replaceAll(/<\/?(?:strong|em)>/g, '') : content
    if (format.isInTable) {
      if (content.trim() !== '') this.cell.push(`<p>${content}</p>`)
      return
    }
    this.endTable()
    const level = format.listLevel ?? (marker.trim() === '' ? undefined : this.levelOf(format.indent))
    if (isCode && level === undefined && format.heading === 0) {
      this.endLists(0)
      this.code.push(content)
      return
    }
    if (content.trim() === '') {
      if (this.code.length > 0) this.code.push('')
      return
    }
    this.endCode()
    if (format.heading > 0) {
      this.endLists(0)
      this.html.push(`<h${format.heading}>${plain}</h${format.heading}>`)
    } else if (level === undefined) {
      this.endLists(0)
      this.html.push(`<p>${content}</p>`)
    } else this.addItem(content, Math.min(level, DEEPEST_LEVEL), marker)
  }

  endCell(): void {
    this.cells.push(this.cell.join(''))
    this.cell = []
  }

  endRow(): void {
    if (this.cell.length > 0) this.endCell()
    const tag = this.rows.length === 0 ? 'th' : 'td'
    this.rows.push(`<tr>${this.cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`)
    this.cells = []
  }

  /** Returns the number of the note. */
  addNote(content: string): number {
    const number = this.notes.length + 1
    this.notes.push(`<p>${noteLabel(number)}${content}</p>`)
    return number
  }

  finish(): string {
    this.endTable()
    this.endCode()
    this.endLists(0)
    return [...this.html, ...this.notes].join('')
  }

  /** Level by the indents of the items above. */
  private levelOf(indent: number): number {
    if (this.openLists.length === 0) this.indents = []
    while ((this.indents.at(-1) ?? -Infinity) > indent) this.indents.pop()
    if (this.indents.at(-1) !== indent) this.indents.push(indent)
    return this.indents.length - 1
  }

  private addItem(content: string, level: number, marker: string): void {
    const number = /^\s*\(?(\d{1,6})[.):]?/.exec(marker)?.[1]
    const isOrdered = number !== undefined || /^\s*\(?[a-z]{1,6}[.)]/i.test(marker)
    const tag = isOrdered ? 'ol' : 'ul'
    const depth = Math.min(level, this.openLists.length) + 1
    this.endLists(depth)
    if (this.openLists.length === depth && this.openLists.at(-1) !== tag) this.endLists(depth - 1)
    if (this.openLists.length === depth) this.html.push('</li><li>')
    else {
      this.openLists.push(tag)
      this.html.push(isOrdered ? `<ol start="${number ?? '1'}"><li>` : '<ul><li>')
    }
    this.html.push(withBox(content))
  }

  private endLists(depth: number): void {
    while (this.openLists.length > depth) this.html.push(`</li></${this.openLists.pop() ?? ''}>`)
  }

  private endCode(): void {
    if (this.code.length > 0) this.html.push(`<pre>${this.code.join('\n')}</pre>`)
    this.code = []
  }

  private endTable(): void {
    if (this.cell.length > 0 || this.cells.length > 0) this.endRow()
    if (this.rows.length === 0) return
    this.endCode()
    this.endLists(0)
    this.html.push(`<table>${this.rows.join('')}</table>`)
    this.rows = []
  }
}
