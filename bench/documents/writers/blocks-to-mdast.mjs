/** Marks of the engine's document model (`document-model.ts`), outermost first where two runs are equally long. */
const MARKS = [
  [1, 'strong'],
  [2, 'emphasis'],
  [4, 'delete'],
]

/** What the engine's readers made, as mdast. */
export const blocksToMdast = (blocks) => ({ type: 'root', children: flow(blocks) })

const flow = (blocks) => blocks.flatMap(blockToMdast)

function blockToMdast(block) {
  switch (block.kind) {
    case 'paragraph':
      return [{ type: 'paragraph', children: phrasing(block.content) }]
    case 'heading':
      return [{ type: 'heading', depth: block.level, children: phrasing(block.content) }]
    case 'code':
      return [{ type: 'code', lang: block.language || null, value: block.text }]
    case 'math':
      return [{ type: 'math', value: block.tex }]
    case 'quote':
      return [{ type: 'blockquote', children: flow(block.blocks) }]
    case 'list':
      return [listToMdast(block)]
    case 'table':
      return tableToMdast(block)
    default:
      return [{ type: 'thematicBreak' }]
  }
}

function listToMdast({ isOrdered, start, items }) {
  const children = items.map(({ task, blocks }) => {
    const spread = blocks.some(({ kind }, index) => index > 0 && kind !== 'list')
    const checked = task === 'none' ? null : task === 'done'
    return { type: 'listItem', spread, checked, children: flow(blocks) }
  })
  return { type: 'list', ordered: isOrdered, start, spread: children.some(({ spread }) => spread), children }
}

function tableToMdast({ caption, rows }) {
  const title = caption.length > 0 ? [{ type: 'paragraph', children: phrasing(caption) }] : []
  const grid = gridOf(rows)
  const width = Math.max(0, ...grid.map((row) => row.length))
  if (width < 2) return [...title, ...rows.flatMap(({ cells }) => cells.flatMap(({ blocks }) => flow(blocks)))]
  const used = Array.from({ length: width }, (_, column) => column).filter((column) =>
    grid.some((row) => (row[column]?.length ?? 0) > 0),
  )
  const cellOf = (children = []) => ({ type: 'tableCell', children })
  const children = grid
    .filter((row) => row.some((cell) => cell.length > 0))
    .map((row) => ({ type: 'tableRow', children: used.map((column) => cellOf(row[column])) }))
  const first = rows[0]?.cells ?? []
  return [...title, { type: 'table', align: used.map((column) => first[column]?.alignment || null), children }]
}

/** Cells by row and column: one over columns stands in the first, one over rows in each. */
function gridOf(rows) {
  const grid = rows.map(() => [])
  for (const [at, { cells }] of rows.entries())
    for (const { blocks, columns, rows: reach } of cells) {
      const children = lineOf(blocks)
      const column = freeColumn(grid[at])
      for (let row = at; row < Math.min(at + reach, rows.length); row += 1)
        for (let next = 0; next < columns; next += 1) grid[row][column + next] = next === 0 ? children : []
    }
  return grid.map((row) => Array.from(row, (cell) => cell ?? []))
}

function freeColumn(row) {
  let column = 0
  while (row[column] !== undefined) column += 1
  return column
}

/** Blocks in a cell, where a line has to do. */
function lineOf(blocks) {
  const lines = blocks.flatMap((block) => {
    if (block.kind === 'paragraph' || block.kind === 'heading') return [phrasing(block.content)]
    if (block.kind === 'code') return block.text.split('\n').map((value) => [{ type: 'inlineCode', value }])
    if (block.kind === 'math') return [[{ type: 'inlineMath', value: block.tex }]]
    if (block.kind === 'quote') return [lineOf(block.blocks)]
    if (block.kind === 'list') return block.items.map((item) => [{ type: 'text', value: '- ' }, ...lineOf(item.blocks)])
    if (block.kind === 'table') return block.rows.map(({ cells }) => cells.flatMap((cell) => lineOf(cell.blocks)))
    return []
  })
  return lines.flatMap((line, index) => (index > 0 ? [{ type: 'html', value: '<br>' }, ...line] : line))
}

function phrasing(pieces, marks = MARKS) {
  const out = []
  for (let at = 0; at < pieces.length;) {
    const [end, found] = longestRun(pieces, at, marks)
    const children = pieces.slice(at, end)
    if (found) {
      const rest = marks.filter((mark) => mark !== found)
      out.push({ type: found[1], children: phrasing(children, rest) })
    } else out.push(...children.map(pieceToMdast))
    at = end
  }
  return out
}

function longestRun(pieces, at, marks) {
  let [longest, found] = [at + 1, undefined]
  for (const mark of marks) {
    let end = at
    while (end < pieces.length && pieces[end].marks & mark[0]) end += 1
    if (end > at && (end > longest || !found)) [longest, found] = [end, mark]
  }
  return [longest, found]
}

function pieceToMdast(piece) {
  switch (piece.kind) {
    case 'text':
      return { type: 'text', value: piece.text }
    case 'code':
      return { type: 'inlineCode', value: piece.text }
    case 'raw':
      return piece.text.startsWith('$')
        ? { type: 'inlineMath', value: piece.text.slice(1, -1) }
        : { type: 'html', value: piece.text }
    case 'image':
      return { type: 'image', url: piece.url, alt: piece.alt }
    case 'link':
      return { type: 'link', url: piece.url, children: phrasing(piece.content) }
    default:
      return { type: 'break' }
  }
}
