import { breakLines, toWords } from './line-breaking.mjs'

const FROM_EDGE = 36
const SIZE = 8.5

function runningLine(ink, { margins, pageSize, faces }, text, y) {
  const width = pageSize[0] - margins.left - margins.right
  const [line] = breakLines(
    toWords([{ text }], () => faces.regular, SIZE),
    Infinity,
  )
  ink.line(line, margins.left, y, width, 'centre')
}

/** Draws header and footer of a style onto every page, once it is known how many there are. */
export function runningHeads(document, ink, style, title) {
  const { start, count } = document.bufferedPageRange()
  for (let index = start; index < start + count; index += 1) {
    document.switchToPage(index)
    const about = { title, page: index + 1, pages: count }
    if (style.header) runningLine(ink, style, style.header(about), FROM_EDGE)
    if (style.footer) runningLine(ink, style, style.footer(about), style.pageSize[1] - FROM_EDGE)
  }
}
