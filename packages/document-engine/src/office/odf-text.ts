import { escapeHtml } from '../text/escape-html.js'
import { EngineFault } from '../model/document.js'
import { MARKED_NOTES, noteLabel, noteReference } from '../markdown/footnote-marks.js'
import { codeLines, joinedCode, withBox } from './html-pieces.js'
import { alternativeText } from './office-package.js'
import type { OdfStyles } from './odf-styles.js'
import { childElements, descendant, textOf, type XmlElement } from './xml.js'

/** Most cells of all tables, of which a file may repeat one in few bytes. */
const MOST_CELLS = 500_000
const MOST_REPEATED_CHARACTERS = 20_000_000
const MOST_SPACES = 1000

/** Names of elements with content that is not text of the document, or is made of it. */
const LEFT_OUT: ReadonlySet<string> = new Set(
  (
    'tracked-changes sequence-decls variable-decls user-field-decls forms table-of-content illustration-index table-index ' +
    'object-index user-index alphabetical-index-auto-mark-file shapes settings notes-configuration thumbnail'
  ).split(' '),
)

export interface OdfFindings {
  droppedPictures: number
  unreadObjects: number
}

/** Text of an OpenDocument file as HTML (ODF 1.3 part 3, 5 to 10). */
export class OdfText {
  readonly findings: OdfFindings = { droppedPictures: 0, unreadObjects: 0 }
  private readonly notes: string[] = []
  private cells = 0
  private repeatedCharacters = 0

  /** @param objectHtml an embedded formula as MathML; '' for objects that are none */
  constructor(
    private readonly styles: OdfStyles,
    private readonly objectHtml: (path: string) => string,
  ) {}

  /** The notes that were referred to so far. */
  notesHtml(): string {
    return this.notes.join('')
  }

  blocks(parent: XmlElement | undefined): string {
    let html = ''
    let code: string[] = []
    const endCode = (): void => {
      if (code.length > 0) html += `<pre>${code.join('\n')}</pre>`
      code = []
    }
    for (const child of childElements(parent)) {
      const lines = child.name === 'p' ? this.codeOf(child) : undefined
      if (lines !== undefined) {
        code.push(lines)
        continue
      }
      // Blank lines within code.
      if (code.length === 0 || child.name !== 'soft-page-break') endCode()
      html += this.block(child)
    }
    endCode()
    return html
  }

  block(element: XmlElement): string {
    const { name, attributes } = element
    switch (name) {
      case 'h':
        return this.heading(element, Number(attributes['text:outline-level'] ?? 1))
      case 'p':
        return this.paragraph(element)
      case 'list':
        return this.list(element, attributes['text:style-name'], 1)
      case 'table':
        return this.table(element)
      case 'frame':
        return this.frame(element)
      default:
        return LEFT_OUT.has(name) ? '' : this.blocks(element)
    }
  }

  inline(parent: XmlElement): string {
    return parent.children.map((child) => (typeof child === 'string' ? escapeHtml(child) : this.piece(child))).join('')
  }

  private heading(element: XmlElement, level: number): string {
    return `<h${Math.min(6, Math.max(1, level || 1))}>${this.inline(element)}</h${Math.min(6, Math.max(1, level || 1))}>`
  }

  private paragraph(element: XmlElement): string {
    const names = this.styles.namesOf('paragraph', element.attributes['text:style-name'])
    if (names.includes('Title')) return this.heading(element, 1)
    const html = `<p>${joinedCode(this.inline(element))}</p>`
    return names.some((name) => name === 'Quotations' || name === 'Quote') ? `<blockquote>${html}</blockquote>` : html
  }

  private isCode(element: XmlElement): boolean {
    const names = this.styles.namesOf('paragraph', element.attributes['text:style-name'])
    return names.some((name) => name === 'Preformatted Text' || name === 'Source Code')
  }

  /** Undefined for a paragraph that is no code. */
  private codeOf(paragraph: XmlElement): string | undefined {
    if (this.isCode(paragraph)) return this.preformatted(paragraph)
    const [first] = childElements(paragraph)
    if (first?.name !== 'span' || !this.styles.characterFormat(first.attributes['text:style-name']).isFixedPitch)
      return undefined
    return codeLines(this.inline(paragraph)) === undefined ? undefined : this.preformatted(paragraph)
  }

  private preformatted(element: XmlElement): string {
    const text = (node: XmlElement): string =>
      node.children
        .map((child) => {
          if (typeof child === 'string') return child
          if (child.name === 's') return ' '.repeat(spaces(child))
          if (child.name === 'tab') return '\t'
          return child.name === 'line-break' ? '\n' : text(child)
        })
        .join('')
    return escapeHtml(text(element))
  }

  private piece(element: XmlElement): string {
    const { name, attributes } = element
    switch (name) {
      case 'span':
        return this.span(element)
      case 'a':
        return `<a href="${escapeHtml(attributes['xlink:href'] ?? '')}">${this.inline(element)}</a>`
      case 's':
      case 'tab':
        return ' '
      case 'line-break':
        return '<br>'
      case 'note':
        return this.note(element)
      case 'annotation':
        return this.annotation(element)
      case 'frame':
        return this.frame(element)
      case 'page-number':
      case 'page-count':
      case 'ruby-text':
        return ''
      default:
        return LEFT_OUT.has(name) ? '' : this.inline(element)
    }
  }

  private span(element: XmlElement): string {
    const html = this.inline(element)
    if (html.trim() === '') return html
    const format = this.styles.characterFormat(element.attributes['text:style-name'])
    if (format.isFixedPitch) return `<code>${html}</code>`
    const tags = [format.isBold ? 'strong' : '', format.isItalic ? 'em' : '', format.isStruck ? 's' : '', format.script]
    return tags.filter((tag) => tag !== '').reduce((inner, tag) => `<${tag}>${inner}</${tag}>`, html)
  }

  private note(element: XmlElement): string {
    return this.addNote('', descendant(element, 'note-body'))
  }

  private annotation(element: XmlElement): string {
    const author = textOf(descendant(element, 'creator')).trim()
    const body = { ...element, children: childElements(element).filter(({ name }) => name === 'p' || name === 'list') }
    return this.addNote(author, body)
  }

  private addNote(author: string, body: XmlElement | undefined): string {
    if (this.notes.length >= MARKED_NOTES) return ''
    const index = this.notes.push('') - 1
    const name = author === '' ? '' : `<b>${escapeHtml(author)}:</b> `
    const lines = childElements(body).map((line) => this.inline(line))
    this.notes[index] = `<p>${noteLabel(index + 1)}${name}${lines.join(' ')}</p>`
    return noteReference(index + 1)
  }

  private list(element: XmlElement, style: string | undefined, level: number): string {
    const own = element.attributes['text:style-name'] ?? style
    const isNumbered = this.styles.isNumbered(own, level) ?? false
    const items = childElements(element).filter(({ name }) => name === 'list-item' || name === 'list-header')
    const start = items[0]?.attributes['text:start-value'] ?? this.styles.startOf(own, level) ?? '1'
    const html = items.map((item) => {
      const content = childElements(item).map((child) =>
        child.name === 'list' ? this.list(child, own, level + 1) : this.block(child),
      )
      return `<li>${withBox(content.join(''))}</li>`
    })
    return isNumbered ? `<ol start="${escapeHtml(start)}">${html.join('')}</ol>` : `<ul>${html.join('')}</ul>`
  }

  /** Rows of headers are marked; without any the first row is the header. */
  private table(element: XmlElement): string {
    const rows: { row: XmlElement; isHeader: boolean }[] = []
    const visit = (parent: XmlElement, isHeader: boolean): void => {
      for (const child of childElements(parent)) {
        if (child.name === 'table-row') rows.push({ row: child, isHeader })
        else if (child.name === 'table-header-rows') visit(child, true)
        else if (child.name === 'table-rows' || child.name === 'table-row-group') visit(child, isHeader)
      }
    }
    visit(element, false)
    const hasHeader = rows.some(({ isHeader }) => isHeader)
    const html = rows.map(({ row, isHeader }, index) => this.row(row, isHeader || (!hasHeader && index === 0)))
    return `<table>${html.join('')}</table>`
  }

  private row(row: XmlElement, isHeader: boolean): string {
    const cells = childElements(row, 'table-cell').map((cell) => {
      const { attributes } = cell
      const span = (name: string): string =>
        /^\d{1,4}$/.exec(attributes[`table:number-${name}-spanned`] ?? '')?.[0] ?? '1'
      const tag = isHeader ? 'th' : 'td'
      const html = `<${tag} colspan="${span('columns')}" rowspan="${span('rows')}">${this.blocks(cell)}</${tag}>`
      return this.repeated(html, attributes['table:number-columns-repeated'])
    })
    const html = `<tr>${cells.join('')}</tr>`
    return this.repeated(html, row.attributes['table:number-rows-repeated'])
  }

  private repeated(html: string, count: string | undefined): string {
    const times = Math.max(1, Number(count ?? 1) || 1)
    this.cells += times
    this.repeatedCharacters += html.length * (times - 1)
    if (this.cells > MOST_CELLS || this.repeatedCharacters > MOST_REPEATED_CHARACTERS)
      throw new EngineFault('too_large', `The document has more than ${MOST_CELLS} cells.`)
    return html.repeat(times)
  }

  private frame(frame: XmlElement): string {
    const box = descendant(frame, 'text-box')
    if (box !== undefined) return this.blocks(box)
    const object = descendant(frame, 'object')
    if (object !== undefined) {
      const math = descendant(object, 'math')
      const html = math === undefined ? this.objectHtml(object.attributes['xlink:href'] ?? '') : mathHtml(math)
      if (html === '') this.findings.unreadObjects += 1
      return html
    }
    if (descendant(frame, 'object-ole') !== undefined || descendant(frame, 'plugin') !== undefined) {
      this.findings.unreadObjects += 1
      return ''
    }
    const table = descendant(frame, 'table')
    if (table !== undefined) return this.table(table)
    const text =
      alternativeText(textOf(descendant(frame, 'desc'))) || alternativeText(textOf(descendant(frame, 'title')))
    if (text === '' && descendant(frame, 'image') !== undefined) this.findings.droppedPictures += 1
    return escapeHtml(text)
  }
}

function spaces(element: XmlElement): number {
  return Math.min(MOST_SPACES, Number(element.attributes['text:c'] ?? 1) || 1)
}

/** MathML as it is written in pages. */
export function mathHtml(element: XmlElement): string {
  const inner = element.children
    .map((child) => (typeof child === 'string' ? escapeHtml(child) : mathHtml(child)))
    .join('')
  const { encoding, display } = element.attributes
  const more =
    (encoding === undefined ? '' : ` encoding="${escapeHtml(encoding)}"`) +
    (display === 'block' ? ' display="block"' : '')
  return /^[a-z-]{1,20}$/.test(element.name) ? `<${element.name}${more}>${inner}</${element.name}>` : inner
}
