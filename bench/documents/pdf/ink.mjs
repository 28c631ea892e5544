import { fontReference } from './font-objects.mjs'
import { isFixedPitch, textOperand, textWidth } from './fonts.mjs'
import { gapWidth, wordWidth } from './line-breaking.mjs'

const LINK_COLOUR = '#0b3d91'
const fixed = (value) => String(Math.round(value * 1000) / 1000)

/** Puts lines of text, rules and boxes onto the current page of a document. */
export class Ink {
  #document
  #style
  #names = new Map()

  constructor(document, style) {
    this.#document = document
    this.#style = style
  }

  /** @param {number} y of the baseline; `align`: left, right, centre or justify, within `width` from `x`. */
  line({ words, width: natural, isLast, indent }, x, y, width, align) {
    const left = width - indent - natural
    const gaps = words.length - 1
    const stretches = align === 'justify' && !isLast && gaps > 0 && left < width * 0.35
    const extra = stretches ? left / gaps : 0
    let at = x + indent + (align === 'right' ? left : align === 'centre' ? left / 2 : 0)
    const runs = []
    words.forEach((word, index) => {
      const gap = index === 0 ? 0 : gapWidth(words[index - 1], word) + extra
      at += gap
      this.#addWord(runs, word, at, gap)
      at += wordWidth(word)
    })
    for (const run of runs) this.#run(run, y)
  }

  #addWord(runs, { parts }, x, gap) {
    let at = x
    parts.forEach((part, index) => {
      const last = runs.at(-1)
      const joins = index === 0 && last && last.face === part.face && last.url === part.url && this.#style.joinsWords
      const canJoin = joins && last.closed !== true && part.face.kind !== 'cid'
      if (canJoin) {
        last.words.push(part.text)
        last.gap = gap
      } else runs.push({ ...part, words: [part.text], x: at, gap: 0, closed: parts.length > 1 })
      at += textWidth(part.face, part.text) * part.size
    })
  }

  #run(run, y) {
    const width = run.words.reduce(
      (sum, word, index) => sum + (index > 0 ? run.gap : 0) + textWidth(run.face, word) * run.size,
      0,
    )
    if (run.url) this.#link(run, y, width)
    if (run.face.kind === 'embedded') this.#embedded(run, y)
    else this.#coded(run, y)
  }

  #link({ x, size, url }, y, width) {
    this.#document.link(x, y - size, width, size * 1.2, url)
    this.rule(x, y + 1.5, x + width, y + 1.5, 0.5, LINK_COLOUR)
  }

  #embedded({ face, size, words, gap, x, url }, y) {
    const spacing = gap - textWidth(face, ' ') * size
    this.#document
      .font(face.file)
      .fontSize(size)
      .fillColor(url ? LINK_COLOUR : 'black')
      .text(words.join(' '), x, y, {
        lineBreak: false,
        baseline: 'alphabetic',
        ...(words.length > 1 && { wordSpacing: spacing }),
      })
  }

  #coded({ face, size, words, gap, x, url }, y) {
    const operand = textOperand(face, words, gap / size, this.#style.writesBlanks || isFixedPitch(face))
    this.#document.fillColor(url ? LINK_COLOUR : 'black')
    const matrix = `1 0 0 -1 ${fixed(x)} ${fixed(y)} Tm`
    this.#document.addContent(`BT /${this.#fontName(face)} ${fixed(size)} Tf ${matrix} ${operand} TJ ET`)
  }

  #fontName(face) {
    let known = this.#names.get(face)
    if (!known) {
      known = { name: `X${this.#names.size + 1}`, reference: fontReference(this.#document, face) }
      this.#names.set(face, known)
    }
    this.#document.page.fonts[known.name] = known.reference
    return known.name
  }

  rule(x1, y1, x2, y2, thickness, colour = 'black') {
    if (this.#style.fillsRules) {
      const across = y1 === y2
      const [width, height] = across ? [x2 - x1, thickness] : [thickness, y2 - y1]
      this.#document.rect(x1, y1, width, height).fill(colour)
    } else this.#document.lineWidth(thickness).moveTo(x1, y1).lineTo(x2, y2).stroke(colour)
  }

  box(x, y, width, height, colour) {
    this.#document.rect(x, y, width, height).fill(colour)
  }

  /** A framed curve over two axes, as a plotted measurement looks; it holds no text. */
  drawing(x, y, width, height) {
    const step = width / 8
    this.#document.lineWidth(0.6).rect(x, y, width, height).stroke('black')
    this.rule(x + step, y + height * 0.85, x + width - step, y + height * 0.85, 0.6)
    this.rule(x + step, y + height * 0.15, x + step, y + height * 0.85, 0.6)
    this.#document.moveTo(x + step, y + height * 0.8)
    for (let at = 2; at <= 7; at += 1) this.#document.lineTo(x + at * step, y + height * (at % 2 === 0 ? 0.6 : 0.35))
    this.#document.stroke('black')
  }
}
