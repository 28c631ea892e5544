import { readInline } from './read-inline.mjs'

const FENCE = /^(\s*)(`{3,}|~{3,})\s*([^\s`]*)/
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/
const DELIMITERS = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/
const QUOTE = /^ {0,3}> ?/
const COMMENT = /^\s*<!--.*-->\s*$/
const CELL = /(?:\\.|`[^`]*`|[^|\\])+|\|/g

function cellsOf(line) {
  const parts =
    line
      .trim()
      .replace(/^\|/, '')
      .replace(/(?<!\\)\|$/, '')
      .match(CELL) ?? []
  const cells = ['']
  for (const part of parts) {
    if (part === '|') cells.push('')
    else cells[cells.length - 1] += part
  }
  return cells.map((cell) => readInline(cell.trim()).text.trim())
}

/** Reads blocks from lines one after another; positions and open lists are its state. */
class MarkdownReader {
  blocks = []
  links = []
  #lines
  #at = 0
  /** Columns at which the content of the open items begins. */
  #indents = []

  constructor(source) {
    this.#lines = source.replaceAll('\r\n', '\n').split('\n')
  }

  read() {
    while (this.#at < this.#lines.length) this.#block()
    return { blocks: this.blocks, links: this.links }
  }

  get #line() {
    return this.#lines[this.#at]
  }

  #text(source) {
    const { text, links } = readInline(source)
    this.links.push(...links)
    return text.replace(/\s+/g, ' ').trim()
  }

  #block() {
    const line = this.#line
    if (line.trim() === '' || COMMENT.test(line)) this.#at += 1
    else if (FENCE.test(line)) this.#fence()
    else if (HEADING.test(line)) this.#heading()
    else if (this.#isTable(this.#at)) this.#table()
    else if (RULE.test(line)) this.#at += 1
    else if (QUOTE.test(line)) this.#quote()
    else if (ITEM.test(line)) this.#item()
    else this.#paragraph()
  }

  #fence() {
    const [, indent, fence, language] = FENCE.exec(this.#line)
    const body = []
    this.#at += 1
    while (this.#at < this.#lines.length && !this.#line.trim().startsWith(fence)) {
      body.push(this.#line.startsWith(indent) ? this.#line.slice(indent.length) : this.#line.trimStart())
      this.#at += 1
    }
    this.#at += 1
    this.blocks.push({ type: 'code', language, text: body.join('\n') })
  }

  #heading() {
    const [, marks, source = ''] = HEADING.exec(this.#line)
    this.#indents = []
    this.blocks.push({ type: 'heading', level: marks.length, text: this.#text(source) })
    this.#at += 1
  }

  #isTable(at) {
    const [head, delimiters] = [this.#lines[at], this.#lines[at + 1] ?? '']
    return head.includes('|') && DELIMITERS.test(delimiters) && delimiters.includes('-')
  }

  #table() {
    const rows = [cellsOf(this.#line)]
    for (this.#at += 2; this.#line?.includes('|'); this.#at += 1) rows.push(cellsOf(this.#line))
    this.blocks.push({ type: 'table', rows })
  }

  #quote() {
    const body = []
    for (; QUOTE.test(this.#line ?? ''); this.#at += 1) body.push(this.#line.replace(QUOTE, ''))
    const inner = new MarkdownReader(body.join('\n')).read()
    this.blocks.push(...inner.blocks)
    this.links.push(...inner.links)
  }

  #item() {
    const [, indent, marker, gap, source] = ITEM.exec(this.#line)
    while (this.#indents.length > 0 && indent.length < this.#indents.at(-1)) this.#indents.pop()
    this.#indents.push(indent.length + marker.length + Math.max(1, gap.length))
    this.#at += 1
    const text = this.#text([source, ...this.#continued()].join('\n'))
    this.blocks.push({ type: 'item', depth: this.#indents.length, ordered: /\d/.test(marker), text })
  }

  #paragraph() {
    if (!/^\s/.test(this.#line)) this.#indents = []
    const first = this.#line
    this.#at += 1
    this.blocks.push({ type: 'paragraph', text: this.#text([first, ...this.#continued()].join('\n')) })
  }

  /** The further lines of a paragraph. */
  #continued() {
    const lines = []
    while (this.#at < this.#lines.length && !this.#endsParagraph()) {
      lines.push(this.#line)
      this.#at += 1
    }
    return lines
  }

  #endsParagraph() {
    const line = this.#line
    return (
      line.trim() === '' ||
      [COMMENT, FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line)) ||
      this.#isTable(this.#at)
    )
  }
}

/**
 * Markdown as blocks that scores compare: heading {level, text}, paragraph {text}, item {depth, ordered, text}, table
 * {rows}, code {language, text}; quotations are read as what stands in them, comments and images are left out. Links
 * come beside them: {blocks, links: [{text, url}]}.
 */
export const readMarkdown = (source) => new MarkdownReader(source).read()
