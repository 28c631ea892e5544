import { BlockWriter, escapeHtml } from '../html/render-blocks.mjs'
import { Random } from '../text/random.mjs'
import { packed } from './write-docx.mjs'

/** OpenDocument text as LibreOffice writes it. */
class OdtWriter {
  piece({ text, bold, italic, code, url }) {
    const style = bold ? 'B' : italic ? 'I' : code ? 'C' : undefined
    const span = style ? `<text:span text:style-name="${style}">${escapeHtml(text)}</text:span>` : escapeHtml(text)
    return url ? `<text:a xlink:href="${escapeHtml(url)}">${span}</text:a>` : span
  }

  content = (content) => content.map((one) => this.piece(one)).join('')
  line = (style, inner) => `<text:p text:style-name="${style}">${inner}</text:p>`
  heading = ({ level, content }) => `<text:h text:outline-level="${level}">${this.content(content)}</text:h>`
  paragraph = ({ content }) => this.line('Text_20_body', this.content(content))
  figure = ({ caption }) => this.line('Figure', escapeHtml(caption))

  list({ ordered, items }) {
    const rows = items.map((one) => {
      const nested = one.list ? this.list(one.list) : ''
      return `<text:list-item>${this.line('List', this.content(one.content))}${nested}</text:list-item>`
    })
    return `<text:list text:style-name="${ordered ? 'N' : 'L'}">${rows.join('')}</text:list>`
  }

  table({ header, rows, caption }) {
    const cell = (text) =>
      `<table:table-cell office:value-type="string">${this.line('Contents', escapeHtml(text))}</table:table-cell>`
    const row = (cells) => `<table:table-row>${cells.map(cell).join('')}</table:table-row>`
    const title = caption ? this.line('Table', escapeHtml(caption)) : ''
    return `${title}<table:table><table:table-header-rows>${row(header)}</table:table-header-rows>${rows.map(row).join('')}</table:table>`
  }

  code({ text }) {
    const spaced = (line) => escapeHtml(line).replace(/^ +/, (blanks) => `<text:s text:c="${blanks.length}"/>`)
    return text
      .split('\n')
      .map((line) => this.line('Preformatted_20_Text', spaced(line)))
      .join('')
  }
}

const listStyle = (name, kind, more) =>
  `<text:list-style style:name="${name}">${[1, 2, 3].map((level) => `<text:list-level-style-${kind} text:level="${level}" ${more}/>`).join('')}</text:list-style>`

export function writeOdt(blocks) {
  const writer = new OdtWriter()
  const body = blocks.map((block) => writer[block.type](block)).join('')
  const style = (name, properties) =>
    `<style:style style:name="${name}" style:family="text"><style:text-properties ${properties}/></style:style>`
  const styles =
    style('B', 'fo:font-weight="bold"') +
    style('I', 'fo:font-style="italic"') +
    style('C', 'style:font-name="Liberation Mono"') +
    listStyle('L', 'bullet', 'text:bullet-char="•"') +
    listStyle('N', 'number', 'style:num-format="1"')
  return packed({
    mimetype: 'application/vnd.oasis.opendocument.text',
    'content.xml': `<office:document-content><office:automatic-styles>${styles}</office:automatic-styles><office:body><office:text>${body}</office:text></office:body></office:document-content>`,
  })
}

/** Rich text as Word writes it. */
class RtfWriter {
  text = (text) =>
    text.replaceAll(/[\\{}]/g, '\\$&').replaceAll(/[^\n -~]/g, (character) => `\\u${character.charCodeAt(0)}?`)

  piece({ text, bold, italic, code, url }) {
    const run = `{${bold ? '\\b' : ''}${italic ? '\\i' : ''}${code ? '\\f1' : ''}${bold || italic || code ? ' ' : ''}${this.text(text)}}`
    return url ? `{\\field{\\*\\fldinst HYPERLINK "${url}"}{\\fldrslt ${run}}}` : run
  }

  content = (content) => content.map((one) => this.piece(one)).join('')
  heading = ({ level, content }) => `\\pard\\plain\\s${level}\\outlinelevel${level - 1} ${this.content(content)}\\par\n`
  paragraph = ({ content }) => `\\pard\\plain ${this.content(content)}\\par\n`
  figure = ({ caption }) => `\\pard\\plain ${this.text(caption)}\\par\n`

  list({ ordered, items }, depth = 0) {
    return items
      .map((one, index) => {
        const marker = ordered ? `${index + 1}.` : "\\'b7"
        const nested = one.list ? this.list(one.list, depth + 1) : ''
        return `{\\listtext\\pard\\plain ${marker}\\tab}\\pard\\plain\\ls1\\ilvl${depth} ${this.content(one.content)}\\par\n${nested}`
      })
      .join('')
  }

  table({ header, rows, caption }) {
    const row = (cells) =>
      `\\trowd${cells.map((_, index) => `\\cellx${(index + 1) * 1500}`).join('')}\\pard\\plain\\intbl ${cells.map((cell) => `${this.text(cell)}\\cell`).join(' ')}\\row\n`
    return `${caption ? `\\pard\\plain ${this.text(caption)}\\par\n` : ''}${[header, ...rows].map(row).join('')}`
  }

  code = ({ text }) =>
    text
      .split('\n')
      .map((line) => `\\pard\\plain\\f1 ${this.text(line)}\\par\n`)
      .join('')
}

export function writeRtf(blocks) {
  const writer = new RtfWriter()
  const body = blocks.map((block) => writer[block.type](block)).join('')
  const fonts = '{\\fonttbl{\\f0\\fswiss Arial;}{\\f1\\fmodern Courier New;}}'
  return Buffer.from(`{\\rtf1\\ansi\\ansicpg1252\\deff0${fonts}${body}}`, 'latin1')
}

const figures = (blocks) =>
  blocks.map((block) => (block.type === 'figure' ? { type: 'paragraph', content: [{ text: block.caption }] } : block))

const htmlOf = (blocks, seed) => new BlockWriter(new Random(seed), {}).write(figures(blocks))

/** A book with a chapter for each section. */
export function writeEpub(blocks, { seed }) {
  const starts = blocks.flatMap(({ type, level }, index) =>
    type === 'heading' && level === 2 && index > 0 ? [index] : [],
  )
  const chapters = [0, ...starts].map((start, index) => blocks.slice(start, starts[index]))
  const parts = chapters.map((chapter, index) => [
    `OEBPS/chapter${index}.xhtml`,
    `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><a id="top"/>${htmlOf(chapter, seed + index).replaceAll('<br>', '<br/>')}</body></html>`,
  ])
  const item = (_, index) => `<item id="c${index}" href="chapter${index}.xhtml" media-type="application/xhtml+xml"/>`
  return packed({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
    'OEBPS/content.opf': `<package><metadata/><manifest>${[...chapters]
      .reverse()
      .map((_, index) => item(_, chapters.length - 1 - index))
      .join(
        '',
      )}</manifest><spine>${chapters.map((_, index) => `<itemref idref="c${index}"/>`).join('')}</spine></package>`,
    ...Object.fromEntries(parts),
  })
}

export const MAIL_AUTHOR = 'Ann Lee'

/** A message with its text as HTML in quoted-printable, and in plain. */
export function writeEml(blocks, { seed }) {
  const html = htmlOf(blocks, seed)
  const quoted = [...Buffer.from(html)]
    .map((byte) =>
      byte === 0x0a
        ? '\n'
        : byte === 0x3d || byte > 0x7e || byte < 0x20
          ? `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
          : String.fromCharCode(byte),
    )
    .join('')
    .replaceAll(/([^\n]{60,70})(?=[^\n=][^\n=][^\n=])(?<!=.?)/g, '$1=\n')
  return Buffer.from(
    `From: ${MAIL_AUTHOR}\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=part\n\n--part\nContent-Type: text/plain\n\nSee the other form.\n--part\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n${quoted}\n--part--\n`.replaceAll(
      '\n',
      '\r\n',
    ),
  )
}
