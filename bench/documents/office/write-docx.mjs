import { strToU8, zipSync } from 'fflate'
import { escapeHtml } from '../html/render-blocks.mjs'

const W = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
const M = 'http://schemas.openxmlformats.org/officeDocument/2006/math'
const R = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006/relationships'

const relations = (entries) =>
  `<Relationships xmlns="${PACKAGE}">${entries.map(([id, type, target, more = '']) => `<Relationship Id="${id}" Type="${R}/${type}" Target="${escapeHtml(target)}"${more}/>`).join('')}</Relationships>`

const style = (id, name, more = '') =>
  `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/>${more}</w:style>`

const level = (index, format) =>
  `<w:lvl w:ilvl="${index}"><w:start w:val="1"/><w:numFmt w:val="${format}"/><w:lvlText w:val="•"/></w:lvl>`

const MONOSPACED = '<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas"/>'

/** Writes blocks as Word does; `listsByStyle`: as python-docx does, with a style for each level; `codeByFont`: without a style. */
class WordWriter {
  #links = []
  #lists = 0
  #plan

  constructor(plan) {
    this.#plan = plan
  }

  run({ text, bold, italic, code, url, equation, isDisplayed }) {
    if (equation) {
      const math = `<m:oMath>${equation.omml}</m:oMath>`
      return isDisplayed ? `<m:oMathPara>${math}</m:oMathPara>` : math
    }
    const marks = (bold ? '<w:b/>' : '') + (italic ? '<w:i/>' : '') + (code ? MONOSPACED : '')
    const run = `<w:r>${marks && `<w:rPr>${marks}</w:rPr>`}<w:t xml:space="preserve">${escapeHtml(text)}</w:t></w:r>`
    if (!url) return run
    this.#links.push(url)
    return `<w:hyperlink r:id="link${this.#links.length}">${run}</w:hyperlink>`
  }

  line(properties, content) {
    const inner = content.map((one) => this.run(one)).join('')
    return `<w:p>${properties && `<w:pPr>${properties}</w:pPr>`}${inner}</w:p>`
  }

  heading = ({ level: depth, content }) => this.line(`<w:pStyle w:val="H${depth}"/>`, content)
  paragraph = ({ content }) => this.line('', content)
  figure = ({ caption }) => this.line('', [{ text: caption }])

  list({ ordered, items }, depth = 0, number = (this.#lists += 1)) {
    const name = `${ordered ? 'N' : 'B'}${depth + 1}`
    // One list for each style, as templates have them; or lists of several levels.
    const properties = this.#plan.listsByStyle
      ? `<w:pStyle w:val="${name}"/>`
      : `<w:numPr><w:ilvl w:val="${depth}"/><w:numId w:val="${ordered ? 100 + number : 50}"/></w:numPr>`
    return items
      .map((one) => this.line(properties, one.content) + (one.list ? this.list(one.list, depth + 1, number) : ''))
      .join('')
  }

  table({ header, rows, caption }) {
    const cell = (text) => `<w:tc>${this.line('', [{ text }])}</w:tc>`
    const row = (cells) => `<w:tr>${cells.map(cell).join('')}</w:tr>`
    const title = caption ? this.line('', [{ text: caption }]) : ''
    return `${title}<w:tbl><w:tblPr/>${[header, ...rows].map(row).join('')}</w:tbl>`
  }

  code({ text }) {
    const { codeByFont } = this.#plan
    const lines = text
      .split('\n')
      .map((line) => this.line(codeByFont ? '' : '<w:pStyle w:val="Code"/>', [{ text: line, code: codeByFont }]))
    return lines.join('')
  }

  write(blocks) {
    return blocks.map((block) => this[block.type](block)).join('')
  }

  parts(body) {
    const levels = [1, 2, 3]
    const abstract = (id, formats) =>
      `<w:abstractNum w:abstractNumId="${id}">${formats.map((format, index) => level(index, format)).join('')}</w:abstractNum>`
    const numbers = Array.from({ length: this.#lists + 1 }, (_, index) => 100 + index)
    return {
      'word/document.xml': `<w:document xmlns:w="${W}" xmlns:m="${M}" xmlns:r="${R}"><w:body>${body}<w:sectPr/></w:body></w:document>`,
      'word/styles.xml': `<w:styles xmlns:w="${W}"><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="Calibri"/><w:lang w:val="en-GB"/></w:rPr></w:rPrDefault></w:docDefaults>${[1, 2, 3, 4, 5, 6].map((depth) => style(`H${depth}`, `heading ${depth}`)).join('')}${style('Code', 'Source Code')}${levels.map((depth) => style(`B${depth}`, `List Bullet${depth > 1 ? ` ${depth}` : ''}`, `<w:pPr><w:numPr><w:numId w:val="${depth}"/></w:numPr></w:pPr>`)).join('')}${levels.map((depth) => style(`N${depth}`, `List Number${depth > 1 ? ` ${depth}` : ''}`, `<w:pPr><w:numPr><w:numId w:val="${10 + depth}"/></w:numPr></w:pPr>`)).join('')}</w:styles>`,
      'word/numbering.xml': `<w:numbering xmlns:w="${W}">${abstract(1, ['bullet'])}${abstract(2, ['decimal'])}${abstract(3, ['bullet', 'bullet', 'bullet'])}${numbers.map((id) => abstract(id, ['decimal', 'decimal', 'decimal'])).join('')}${levels.map((depth) => `<w:num w:numId="${depth}"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="${10 + depth}"><w:abstractNumId w:val="2"/></w:num>`).join('')}<w:num w:numId="50"><w:abstractNumId w:val="3"/></w:num>${numbers.map((id) => `<w:num w:numId="${id}"><w:abstractNumId w:val="${id}"/></w:num>`).join('')}</w:numbering>`,
      'word/_rels/document.xml.rels': relations([
        ['styles', 'styles', 'styles.xml'],
        ['numbering', 'numbering', 'numbering.xml'],
        ...this.#links.map((url, index) => [`link${index + 1}`, 'hyperlink', url, ' TargetMode="External"']),
      ]),
    }
  }
}

/** A ZIP archive with parts of text; the same bytes each time. */
export function packed(parts) {
  const entries = Object.entries(parts).map(([name, text]) => [name, [strToU8(text), { mtime: '2024-01-01' }]])
  return zipSync(Object.fromEntries(entries))
}

/** An Office package whose main part is `main`. */
export const officePackage = (main, parts) =>
  packed({
    '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    '_rels/.rels': relations([['main', 'officeDocument', main]]),
    ...parts,
  })

export { relations }

export function writeDocx(blocks, plan) {
  const writer = new WordWriter(plan)
  return officePackage('word/document.xml', writer.parts(writer.write(blocks)))
}
