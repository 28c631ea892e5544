import { breakLines, toWords } from './line-breaking.mjs'

const HEAVY = 0.9
const LIGHT = 0.5
const SHADE = '#e8ecf2'
const MOST_OF_WIDTH = 0.98
/** So that a word as wide as its cell is not divided for the rounding of sums. */
const SLACK = 0.1
const isNumber = (text) => /^[\d.]+( %)?$/.test(text)

function naturalWidths(cells, padding) {
  return cells[0].map((_, column) => Math.max(...cells.map((row) => row[column][0].width)) + 2 * padding + SLACK)
}

/** Takes what is too much from the widest column, which then has cells of several lines. */
function fitted(widths, room) {
  const total = widths.reduce((sum, one) => sum + one, 0)
  if (total <= room) return widths
  const widest = widths.indexOf(Math.max(...widths))
  return widths.map((width, column) => (column === widest ? Math.max(70, width - (total - room)) : width))
}

function measured({ header, rows }, style, room) {
  const { regular, bold } = style.faces
  const words = [header, ...rows].map((row, index) =>
    row.map((cell) => toWords([{ text: cell }], () => (index === 0 ? bold : regular), style.tableSize)),
  )
  const oneLine = words.map((row) => row.map((cell) => breakLines(cell, Infinity)))
  const widths = fitted(naturalWidths(oneLine, style.columnPadding), room)
  const lines = words.map((row) =>
    row.map((cell, column) => breakLines(cell, widths[column] - 2 * style.columnPadding)),
  )
  return { widths, lines }
}

function drawRules(ink, rules, { x, top, widths, heights }) {
  const right = x + widths.reduce((sum, one) => sum + one, 0)
  const bottoms = heights.map((_, index) => top + heights.slice(0, index + 1).reduce((sum, one) => sum + one, 0))
  const across = (y, thickness) => ink.rule(x, y, right, y, thickness)
  if (rules === 'booktabs') {
    across(top, HEAVY)
    across(bottoms[0], LIGHT)
    across(bottoms.at(-1), HEAVY)
  }
  if (rules !== 'grid') return
  for (const y of [top, ...bottoms]) across(y, LIGHT)
  let at = x
  for (const width of [0, ...widths]) {
    at += width
    ink.rule(at, top, at, bottoms.at(-1), LIGHT)
  }
}

function drawRow(ink, style, row, { x, y, widths, alignments }) {
  let at = x
  row.forEach((lines, column) => {
    lines.forEach((line, index) => {
      if (line.words.length === 0) return
      const baseline = y + style.rowPadding + style.tableSize + index * style.tableSize * 1.2
      const inner = widths[column] - 2 * style.columnPadding
      ink.line(line, at + style.columnPadding, baseline, inner, alignments[column])
    })
    at += widths[column]
  })
}

/** Draws a table that stays on one page, below its caption. */
export function drawTable(block, { ink, flow, style, drawCaption }) {
  const { widths, lines } = measured(block, style, flow.width * MOST_OF_WIDTH)
  const rowHeight = (row) => Math.max(...row.map((cell) => cell.length)) * style.tableSize * 1.2 + 2 * style.rowPadding
  const heights = lines.map(rowHeight)
  const height = heights.reduce((sum, one) => sum + one, 0)
  flow.skip(style.blockGap)
  flow.need(height + style.blockGap + 3 * style.leading)
  drawCaption(block.caption)
  const total = widths.reduce((sum, one) => sum + one, 0)
  const x = flow.x + (style.centresTables ? (flow.width - total) / 2 : 0)
  const top = flow.y
  if (block.rules === 'grid' && style.shadesHeader) ink.box(x, top, total, heights[0], SHADE)
  const alignments = widths.map((_, column) => (block.rows.every((row) => isNumber(row[column])) ? 'right' : 'left'))
  lines.forEach((row, index) => {
    drawRow(ink, style, row, { x, y: flow.y, widths, alignments })
    flow.y += heights[index]
  })
  drawRules(ink, block.rules, { x, top, widths, heights })
  flow.y += style.blockGap
}
