import { endsSentence, firstCharacter, isLowerCase } from './characters.js'
import { type DocumentStyle, sizeClass } from './document-style.js'
import type { Line, Region } from './layout-model.js'

const INDENT_EM = 0.8
const MOST_INDENT_EM = 6
const TITLE_RATIO = 1.25

/** Whether a new paragraph begins at `line`. `block` holds the lines of the paragraph so far and is not empty. */
export function beginsParagraph(block: readonly Line[], line: Line, region: Region, style: DocumentStyle): boolean {
  const last = block.at(-1)
  if (last === undefined) return true
  if (isSetApart(block, line, style) || isOtherStyle(last, line, region)) return true
  if (isIndentChange(block, last, line, region)) return true
  // Titles are broken where their words want it, not where the column ends.
  const isTitle = last.size > style.bodySize * TITLE_RATIO
  return !isTitle && isShortLast(last, line, region)
}

/** More white space than between the lines of the paragraph, or of the document where it has one line so far. */
export function isSetApart(block: readonly Line[], line: Line, style: DocumentStyle): boolean {
  const last = block.at(-1)
  if (last === undefined) return true
  const distance = line.y - last.y
  if (distance < -line.size * 0.5) return true
  const before = block.at(-2)
  const usual = before === undefined ? style.leadingOf(Math.max(last.size, line.size)) : last.y - before.y
  return distance > Math.max(usual * 1.18, usual + 1)
}

/** Headings are set in another size, or bold, and end before the edge. */
function isOtherStyle(last: Line, line: Line, region: Region): boolean {
  if (Math.abs(sizeClass(last.size) - sizeClass(line.size)) > Math.max(0.5, line.size * 0.06)) return true
  if (last.isBold === line.isBold) return false
  return last.isBold ? hasRoomFor(last, line, region) : hasRoomFor(last, line, region) || endsSentence(last.text)
}

function isIndentChange(block: readonly Line[], last: Line, line: Line, region: Region): boolean {
  const em = line.size
  const first = block[0] ?? last
  const shift = line.x1 - last.x1
  if (isCentred(last, region) && isCentred(line, region)) return false
  if (shift > INDENT_EM * em && shift < MOST_INDENT_EM * em) {
    const isHanging = block.length === 1 && first.x1 - region.left < INDENT_EM * em && !endsSentence(last.text)
    return !isHanging || hasRoomFor(last, line, region)
  }
  const isOutdented = shift < -INDENT_EM * em
  return isOutdented && block.length > 1 && first.x1 < last.x1 - INDENT_EM * em && line.x1 < first.x1 + INDENT_EM * em
}

/** The last line of a paragraph leaves room in which the next word would have found place. */
function isShortLast(last: Line, line: Line, region: Region): boolean {
  if (!hasRoomFor(last, line, region)) return false
  if (!isLowerCase(firstCharacter(line.text))) return true
  return endsSentence(last.text) && region.right - last.x2 > (region.right - region.left) * 0.4
}

/** The first word of `line` would have fitted behind `last`, with a margin. */
export function hasRoomFor(last: Line, line: Line, region: Region): boolean {
  const [word = ''] = line.text.split(' ')
  const perCharacter = (line.x2 - line.x1) / Math.max(1, line.text.length)
  const room = region.right - last.x2
  return room > Math.min(word.length, 25) * perCharacter + 1.2 * line.size
}

function isCentred(line: Line, region: Region): boolean {
  const before = line.x1 - region.left
  const after = region.right - line.x2
  return before > line.size * 1.5 && Math.abs(before - after) < line.size * 1.2
}
