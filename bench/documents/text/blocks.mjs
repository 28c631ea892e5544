/**
 * A document as its author meant it. Blocks: heading {level, content}, paragraph {content}, list {ordered, items},
 * item {content, list?}, table {rules, header, rows}, figure {caption}, code {language,
 * text}; content is a row of pieces
 * {text, bold?, italic?, code?, url?}.
 */
export const piece = (text, marks = {}) => ({ text, ...marks })
export const plain = (content) => content.map(({ text }) => text).join('')
export const heading = (level, text) => ({ type: 'heading', level, content: [piece(text)] })
export const paragraph = (content) => ({
  type: 'paragraph',
  content: typeof content === 'string' ? [piece(content)] : content,
})
export const list = (ordered, items) => ({ type: 'list', ordered, items })
export const item = (content, nested) => ({
  content: typeof content === 'string' ? [piece(content)] : content,
  ...(nested && { list: nested }),
})
/** `rules`: grid, booktabs (three lines across) or none. */
export const table = (rules, header, rows, caption) => ({
  type: 'table',
  rules,
  header,
  rows,
  ...(caption && { caption }),
})
/** A drawing of which a reader of text can give the caption only. */
export const figure = (caption) => ({ type: 'figure', caption })
export const code = (language, text) => ({ type: 'code', language, text })

const escaped = (text) => text.replace(/[\\*_[\]<`]/g, '\\$&')

function pieceMarkdown({ text, bold, italic, code: isCode, url }) {
  const inner = isCode ? `\`${text}\`` : escaped(text)
  const marked = bold ? `**${inner}**` : italic ? `*${inner}*` : inner
  return url ? `[${marked}](${url})` : marked
}

const contentMarkdown = (content) => content.map(pieceMarkdown).join('')

function listMarkdown({ ordered, items }, indent) {
  return items
    .map((one, index) => {
      const marker = ordered ? `${index + 1}. ` : '- '
      const nested = one.list ? `\n${listMarkdown(one.list, indent + ' '.repeat(marker.length))}` : ''
      return `${indent}${marker}${contentMarkdown(one.content)}${nested}`
    })
    .join('\n')
}

function tableMarkdown({ header, rows, caption }) {
  const line = (cells) => `| ${cells.map((cell) => escaped(cell).replaceAll('|', '\\|')).join(' | ')} |`
  const lines = [line(header), `|${' --- |'.repeat(header.length)}`, ...rows.map(line)].join('\n')
  return caption ? `${escaped(caption)}\n\n${lines}` : lines
}

const WRITERS = {
  heading: ({ level, content }) => `${'#'.repeat(level)} ${contentMarkdown(content)}`,
  paragraph: ({ content }) => contentMarkdown(content),
  list: (block) => listMarkdown(block, ''),
  table: tableMarkdown,
  figure: ({ caption }) => escaped(caption),
  code: ({ language, text }) => `\`\`\`${language}\n${text}\n\`\`\``,
}

/** The same document in Markdown, as a reader of it should hand it back. */
export const toMarkdown = (blocks) => `${blocks.map((block) => WRITERS[block.type](block)).join('\n\n')}\n`

const itemsOf = ({ ordered, items }, depth) =>
  items.flatMap((one) => [
    { type: 'item', depth, ordered, text: plain(one.content) },
    ...(one.list ? itemsOf(one.list, depth + 1) : []),
  ])

const FLAT = {
  heading: ({ level, content }) => [{ type: 'heading', level, text: plain(content) }],
  paragraph: ({ content }) => [{ type: 'paragraph', text: plain(content) }],
  list: (block) => itemsOf(block, 1),
  table: ({ header, rows, caption, rules }) => [
    ...(caption ? [{ type: 'paragraph', text: caption }] : []),
    { type: 'table', rules, rows: [header, ...rows] },
  ],
  figure: ({ caption }) => [{ type: 'paragraph', text: caption }],
  code: ({ language, text }) => [{ type: 'code', language, text }],
}

/** The same document in the blocks that scores compare: lists as their items, content as text. */
export const toScoredBlocks = (blocks) => blocks.flatMap((block) => FLAT[block.type](block))

const linksOf = ({ content = [], list: nested, items = [] }) => [
  ...content.flatMap(({ text, url }) => (url ? [{ text, url }] : [])),
  ...items.flatMap(linksOf),
  ...(nested ? linksOf(nested) : []),
]

/** Where the words of a document lead, in order: {text, url}. */
export const toLinks = (blocks) => blocks.flatMap(linksOf)
