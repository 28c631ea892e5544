const ESCAPES = {
  '\\': '\\textbackslash{}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '|': '\\textbar{}',
  '<': '\\textless{}',
  '>': '\\textgreater{}',
}
const escaped = (text) => text.replace(/[\\~^|<>]|[#$%&_{}]/g, (character) => ESCAPES[character] ?? `\\${character}`)

function piece({ text, bold, italic, code, url }) {
  const inner = escaped(text)
  const marked = bold ? `\\textbf{${inner}}` : italic ? `\\emph{${inner}}` : code ? `\\texttt{${inner}}` : inner
  return url ? `\\href{${url}}{${marked}}` : marked
}

const content = (pieces) => pieces.map(piece).join('')

function list({ ordered, items }) {
  const name = ordered ? 'enumerate' : 'itemize'
  const rows = items.map((item) => `\\item ${content(item.content)}${item.list ? `\n${list(item.list)}` : ''}`)
  return `\\begin{${name}}\n${rows.join('\n')}\n\\end{${name}}`
}

function table({ rules, header, rows, caption }) {
  const isGrid = rules === 'grid'
  // A column of long texts is set as paragraphs.
  const isLong = header.map((_, column) => rows.some((cells) => cells[column].length > 30))
  const letters = isLong.map((long) => (long ? 'p{0.3\\linewidth}' : 'l'))
  const form = isGrid ? `|${letters.join('|')}|` : letters.join('')
  const lines = [header, ...rows].map((cells) => `${cells.map(escaped).join(' & ')} \\\\`)
  const [top, middle, bottom] =
    rules === 'booktabs'
      ? ['\\toprule', '\\midrule', '\\bottomrule']
      : isGrid
        ? ['\\hline', '\\hline', '']
        : ['', '', '']
  const body = isGrid ? lines.slice(1).map((line) => `${line} \\hline`) : lines.slice(1)
  const title = caption ? `\\noindent ${escaped(caption)}\n\n` : ''
  return `${title}\\noindent{\\small\\begin{tabular}{${form}}\n${top}\n${lines[0]}\n${middle}\n${body.join('\n')}\n${bottom}\n\\end{tabular}}`
}

const HEADINGS = ['', 'title', 'section', 'subsection', 'subsubsection']

const WRITERS = {
  heading: (block) =>
    block.level === 1
      ? `\\begin{center}{\\LARGE ${content(block.content)}}\\end{center}`
      : `\\${HEADINGS[block.level] ?? 'paragraph'}*{${content(block.content)}}`,
  paragraph: (block) => content(block.content),
  list,
  table,
  figure: ({ caption }) => escaped(caption),
  code: ({ text }) => `\\begin{verbatim}\n${text}\n\\end{verbatim}`,
}

/** Programs that are wider than a column would be printed over the next one. */
const SMALL_PROGRAMS = '\\makeatletter\\def\\verbatim@font{\\ttfamily\\scriptsize}\\makeatother'

/** The blocks as a LaTeX article, in one or two columns. `isT1`: with fonts that plain installations have as bitmaps only. */
export function latexSource(blocks, { columns, isT1 }) {
  const body = blocks.map((block) => WRITERS[block.type](block)).join('\n\n')
  return `\\documentclass[${columns === 2 ? 'twocolumn,10pt' : '11pt'},a4paper]{article}
\\usepackage[utf8]{inputenc}${isT1 ? '\\usepackage[T1]{fontenc}' : ''}\\usepackage{booktabs}\\usepackage[hidelinks]{hyperref}
${columns === 2 ? SMALL_PROGRAMS : ''}
\\begin{document}
${body}
\\end{document}
`
}
