import { plain } from '../text/blocks.mjs'
import { Flow } from './flow.mjs'
import { textWidth } from './fonts.mjs'
import { Ink } from './ink.mjs'
import { breakLines, toWords } from './line-breaking.mjs'
import { drawTable } from './tables.mjs'

/** Sets the blocks of one document; every method draws one kind of block where the flow stands. */
export class Typesetter {
  constructor(document, style) {
    this.document = document
    this.style = style
    this.ink = new Ink(document, style)
    this.flow = new Flow(document, style)
    this.bodyFace = ({ bold, italic, code }) =>
      code ? style.faces.code : bold ? style.faces.bold : italic ? style.faces.italic : style.faces.regular
  }

  /** Lines of content from `indent` points on; returns nothing, moves the flow. */
  #lines(content, { faceOf, size, leading, align, indent = 0, marker, ...breaking }) {
    const width = this.flow.width - indent
    for (const line of breakLines(toWords(content, faceOf, size), width, breaking)) {
      this.flow.need(leading)
      const baseline = this.flow.y + size
      if (marker && line === marker.line) marker.draw(baseline)
      this.ink.line(line, this.flow.x + indent, baseline, width, align)
      this.flow.y += leading
    }
  }

  heading({ level, content }) {
    const { style, flow } = this
    const size = style.headingSizes[level - 1]
    const isTitle = level === 1
    flow.skip(isTitle ? 0 : size * 0.9)
    flow.need(size * 1.25 + 3 * style.leading)
    if (style.hasOutline) this.#addToOutline(level, plain(content))
    const face = isTitle && style.regularTitle ? style.headingFaces.regular : style.headingFaces.bold
    const align = isTitle && style.centresTitle ? 'centre' : 'left'
    this.#lines(content, { faceOf: () => face, size, leading: size * 1.25, align })
    flow.y += size * (isTitle ? 0.6 : 0.35)
    this.afterHeading = true
  }

  #addToOutline(level, text) {
    this.outline ??= [this.document.outline]
    this.outline.length = level
    this.outline.push(this.outline.at(-1).addItem(text))
  }

  paragraph({ content }) {
    const { style, flow } = this
    const firstIndent = this.afterHeading || this.inFront ? 0 : style.firstLineIndent
    this.#body(content, { align: this.inFront && style.centresTitle ? 'centre' : style.align, firstIndent })
    flow.y += this.inFront ? style.leading : style.paragraphGap
    this.afterHeading = false
  }

  #body(content, options) {
    const { bodySize: size, leading, isHyphenated, align } = this.style
    this.#lines(content, { faceOf: this.bodyFace, size, leading, align, isHyphenated, ...options })
  }

  list(block, depth = 0) {
    const { style, flow } = this
    if (depth === 0) flow.skip(style.blockGap / 2)
    block.items.forEach((one, index) => {
      const indent = style.listIndent * (depth + 1)
      const ordinal = depth === 0 ? `${index + 1}.` : `(${String.fromCharCode(97 + index)})`
      this.#marker(block.ordered ? ordinal : style.bullets[depth], indent)
      this.#body(one.content, { indent })
      flow.y += style.paragraphGap / 4
      if (one.list) this.list(one.list, depth + 1)
    })
    if (depth === 0) flow.y += style.blockGap
  }

  #marker(text, indent) {
    const { style, flow, ink } = this
    const face = style.faces.regular
    flow.need(style.leading)
    const words = toWords([{ text }], () => face, style.bodySize)
    const x = flow.x + indent - textWidth(face, text) * style.bodySize - style.bodySize * 0.5
    ink.line({ words, width: 0, indent: 0, isLast: true }, x, flow.y + style.bodySize, 100, 'left')
  }

  table(block) {
    const { style } = this
    const drawCaption = (caption) => {
      this.#body([{ text: caption }], { align: style.centresTables ? 'centre' : 'left', isHyphenated: false })
      this.flow.y += style.leading * 0.4
    }
    drawTable(block, { ink: this.ink, flow: this.flow, style, drawCaption })
    this.flow.y += style.blockGap / 2
    this.afterHeading = false
  }

  code({ text }) {
    const { style, flow } = this
    const face = style.faces.code
    const lines = text.split('\n')
    const longest = Math.max(...lines.map((line) => textWidth(face, line)))
    const size = Math.min(style.codeSize, (flow.width - 8) / longest)
    flow.skip(style.blockGap)
    flow.need(lines.length * size * 1.25)
    for (const line of lines) {
      const [, blanks, rest] = /^( *)(.*)$/.exec(line)
      const x = flow.x + 4 + textWidth(face, blanks) * size
      const words = toWords([{ text: rest }], () => face, size)
      if (words.length > 0) this.ink.line({ words, width: 0, indent: 0, isLast: true }, x, flow.y + size, 500, 'left')
      flow.y += size * 1.25
    }
    flow.y += style.blockGap
    this.afterHeading = false
  }

  figure({ caption }) {
    const { style, flow, ink } = this
    const height = style.bodySize * 8
    flow.skip(style.blockGap)
    flow.need(height + 4 * style.leading)
    ink.drawing(flow.x, flow.y, flow.width * 0.7, height)
    flow.y += height + style.leading * 0.6
    this.#body([{ text: caption }], { align: 'left', isHyphenated: false })
    flow.y += style.blockGap + style.leading * 0.5
    this.afterHeading = false
  }
}
