import type { Line } from './layout-model.js'

const LEADER_LINE_PATTERN = /(?:\. ?){4}\s?[\w-]{0,8}$/
/** As much of the end of a line as the pattern can take. */
const LEADER_LINE_CHARACTERS = 17

/** Dots lead to a page number: an entry of a table of contents or of an index. */
export function isLeaderLine(line: Line): boolean {
  return LEADER_LINE_PATTERN.test(line.text.slice(-LEADER_LINE_CHARACTERS))
}

/** The same without dots, as chapters stand among sections: a number, a title, a page number. */
export function isBareEntry(line: Line): boolean {
  return /^(?:\d{1,3}(?:\.\d{1,3})*\.?|[A-Z]|[IVX]{1,5})\s.{2,}\s\d{1,4}$/u.test(line.text) && line.spans.length > 2
}

/** The dots as one sign. */
export function withoutLeaders(text: string): string {
  return text.replace(/(?:\s?\.){4,}\s*/g, ' … ').trim()
}
