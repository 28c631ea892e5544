export const escapeHtml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** A highlighter's spans around the words of a program. */
const highlighted = (text) =>
  escapeHtml(text)
    .replace(/\b(def|for|in|if|raise|return)\b/g, '<span class="k">$1</span>')
    .replace(/\b(\d+)\b/g, '<span class="mi">$1</span>')

const CODE_WRITERS = [
  ({ language, text }) => `<pre><code class="language-${language}">${escapeHtml(text)}\n</code></pre>`,
  ({ language, text }) =>
    `<div class="highlight highlight-source-${language}"><pre>${highlighted(text)}\n</pre><button class="copy">Copy</button></div>`,
  ({ language, text }) => {
    const numbers = text.split('\n').map((_, index) => `<span>${index + 1}</span>`)
    return `<table class="highlighttable"><tr><td class="linenos"><pre>${numbers.join('\n')}</pre></td><td class="code"><pre><code class="lang-${language}">${highlighted(text)}\n</code></pre></td></tr></table>`
  },
]

/** Writes blocks as the main content of a page; `quirks`: relativeLinks, permalinks, omitsEndTags, wrapsInDivs. */
export class BlockWriter {
  #random
  #quirks
  #ids = 0

  constructor(random, quirks) {
    this.#random = random
    this.#quirks = quirks
  }

  #end(tag) {
    return this.#quirks.omitsEndTags ? '' : `</${tag}>`
  }

  piece({ text, bold, italic, code, url }) {
    let html = escapeHtml(text)
    if (code) html = `<code>${html}</code>`
    if (bold) html = this.#random.chance(0.5) ? `<strong>${html}</strong>` : `<b>${html}</b>`
    if (italic) html = this.#random.chance(0.5) ? `<em>${html}</em>` : `<i>${html}</i>`
    if (!url) return html
    const href = this.#quirks.relativeLinks ? url.replace('https://www.example.org', '') : url
    return `<a class="link" href="${escapeHtml(href)}">${html}</a>`
  }

  content(pieces) {
    return pieces.map((one) => this.piece(one)).join('')
  }

  heading({ level, content }) {
    this.#ids += 1
    const anchor = this.#quirks.permalinks
      ? `<a class="headerlink" href="#section-${this.#ids}" title="Permalink to this headline">¶</a>`
      : ''
    return `<h${level} id="section-${this.#ids}">${this.content(content)}${anchor}</h${level}>`
  }

  paragraph({ content }) {
    const html = `<p>${this.content(content)}${this.#end('p')}`
    return this.#quirks.wrapsInDivs ? `<div class="css-${this.#random.integer(100, 999)}">${html}</div>` : html
  }

  list({ ordered, items }) {
    const tag = ordered ? 'ol' : 'ul'
    const rows = items.map(
      (one) => `<li>${this.content(one.content)}${one.list ? `\n${this.list(one.list)}` : ''}${this.#end('li')}`,
    )
    return `<${tag}>\n${rows.join('\n')}\n</${tag}>`
  }

  table({ header, rows, caption, spans = [] }) {
    const cellOf = (row, column, tag) => {
      const span = spans.find((one) => one.row === row && one.column === column)
      const covered = spans.some((one) => covers(one, row, column))
      if (covered) return ''
      const extent = span ? ` ${span.columns ? `colspan="${span.columns}"` : `rowspan="${span.rows}"`}` : ''
      return `<${tag}${extent}>${escapeHtml((row < 0 ? header : rows[row])[column])}${this.#end(tag)}`
    }
    const line = (row, tag) => `<tr>${header.map((_, column) => cellOf(row, column, tag)).join('')}${this.#end('tr')}`
    const title = caption ? `<caption>${escapeHtml(caption)}</caption>` : ''
    const body = rows.map((_, row) => line(row, 'td')).join('\n')
    return `<table class="data">${title}<thead>${line(-1, 'th')}</thead>\n<tbody>${body}</tbody></table>`
  }

  code(block) {
    return this.#random.pick(CODE_WRITERS)(block)
  }

  /** @returns {string} the blocks one after another. */
  write(blocks) {
    return blocks.map((block) => this[block.type](block)).join('\n')
  }
}

const covers = (span, row, column) =>
  span.columns
    ? row === span.row && column > span.column && column < span.column + span.columns
    : column === span.column && row > span.row && row < span.row + span.rows
