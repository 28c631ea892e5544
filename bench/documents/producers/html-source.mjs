import { escapeHtml } from '../html/render-blocks.mjs'

const STYLE = `
  @page { size: A4; margin: 22mm }
  body { font: 11pt/1.35 "DejaVu Serif", serif; margin: 0 }
  h1, h2, h3, h4 { font-family: "DejaVu Sans", sans-serif; line-height: 1.2 }
  pre, code { font: 9pt/1.3 "DejaVu Sans Mono", monospace }
  table { border-collapse: collapse; font-size: 9.5pt; margin: 1em 0 }
  caption { text-align: left; margin-bottom: .4em }
  td, th { padding: 3px 7px; text-align: left; vertical-align: top }
  .grid td, .grid th { border: 1px solid #444 }
  .booktabs { border-top: 1.5px solid #000; border-bottom: 1.5px solid #000 }
  .booktabs th { border-bottom: 1px solid #000 }`
const TWO_COLUMNS =
  'body { column-count: 2; column-gap: 9mm; text-align: justify; font-size: 9.5pt } table { font-size: 8pt } pre { font-size: 6.5pt }'

function piece({ text, bold, italic, code, url }) {
  const inner = code ? `<code>${escapeHtml(text)}</code>` : escapeHtml(text)
  const marked = bold ? `<b>${inner}</b>` : italic ? `<i>${inner}</i>` : inner
  return url ? `<a href="${escapeHtml(url)}">${marked}</a>` : marked
}

const content = (pieces) => pieces.map(piece).join('')

function list({ ordered, items }) {
  const rows = items.map((item) => `<li>${content(item.content)}${item.list ? list(item.list) : ''}</li>`)
  return ordered ? `<ol>${rows.join('\n')}</ol>` : `<ul>${rows.join('\n')}</ul>`
}

const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`

const WRITERS = {
  heading: (block) => `<h${block.level}>${content(block.content)}</h${block.level}>`,
  paragraph: (block) => `<p>${content(block.content)}</p>`,
  list,
  table: ({ rules, header, rows, caption }) =>
    `${caption ? `<p>${escapeHtml(caption)}</p>` : ''}<table class="${rules}"><thead>${row(header, 'th')}</thead><tbody>${rows.map((cells) => row(cells, 'td')).join('\n')}</tbody></table>`,
  figure: ({ caption }) => `<p>${escapeHtml(caption)}</p>`,
  code: ({ text }) => `<pre>${escapeHtml(text)}</pre>`,
}

/** The blocks as a page for print, in one or two columns. */
export function htmlSource(blocks, { columns, language = 'en' }) {
  const style = STYLE + (columns === 2 ? TWO_COLUMNS : '')
  const body = blocks.map((block) => WRITERS[block.type](block)).join('\n')
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><title>Sample</title><style>${style}</style></head><body>${body}</body></html>`
}
