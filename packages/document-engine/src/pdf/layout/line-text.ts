import { firstCharacter, lastCharacter } from '../../markdown/escape-markdown.js'
import type { Line } from './layout-model.js'

/** Start of a caption, which is no heading. */
export const CAPTION_PATTERN = /^(?:table|figure|fig\.|listing|algorithm|tabelle|abbildung|tableau|表|图|圖|図)\s*\d/iu

const CJK_PATTERN =
  /[\u2e80-\u303f\u3040-\u30ff\u31c0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]|[\u{20000}-\u{3ffff}]/u
const RTL_PATTERN = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u
const LETTER_PATTERN = /\p{L}/u

/** Characters of scripts without blanks between words; Hangul has blanks. */
export function isCjk(character: string): boolean {
  return character !== '' && CJK_PATTERN.test(character)
}

export function isRightToLeft(text: string): boolean {
  return RTL_PATTERN.test(text)
}

export function hasLetter(text: string): boolean {
  return LETTER_PATTERN.test(text)
}

export function isLowerCase(character: string): boolean {
  return /^\p{Ll}$/u.test(character)
}

/** Whether a sentence or clause ends at the end of the text, before closing quotes and brackets. */
export function endsSentence(text: string): boolean {
  return /[.!?:;…。！？：；．][\u0022\u0027\u2019\u201d\u00bb)\]」』）〉》】]*$/u.test(text)
}

const LEADER_LINE_PATTERN = /(?:\. ?){4}\s?[\w-]{0,8}$/
/** Most characters that the pattern can match. */
const LEADER_LINE_CHARACTERS = 17

/** Whether dot leaders end in a page number, as in a table of contents or an index. */
export function isLeaderLine(line: Line): boolean {
  return LEADER_LINE_PATTERN.test(line.text.slice(-LEADER_LINE_CHARACTERS))
}

/** The same without leaders, as for chapters: a number, a title, a page number. */
export function isBareEntry(line: Line): boolean {
  return /^(?:\d{1,3}(?:\.\d{1,3})*\.?|[A-Z]|[IVX]{1,5})\s.{2,}\s\d{1,4}$/u.test(line.text) && line.spans.length > 2
}

/** Replaces leaders by an ellipsis. */
export function withoutLeaders(text: string): string {
  return text.replace(/(?:\s?\.){4,}\s*/g, ' … ').trim()
}

const SOFT_HYPHEN = '\u00ad'
/** Prefixes whose compounds keep their hyphen when the document shows neither form. */
const COMPOUND_PATTERN = /(?:^|[^\p{L}])(?:self|well|all|half|cross|ex|quasi|so)$/iu

/** Least length of the halves of a compound: shorter ones are often words by chance. */
const LEAST_HALF = 4

/** Characters of the end of a text that are examined: no broken word is longer, and patterns stay linear. */
const SEEN_CHARACTERS = 200

/** How a line is joined to the next: `cut` characters are removed from its end, and `blank` is inserted. */
interface Seam {
  readonly cut: number
  readonly blank: '' | ' '
}

/** @param words of the document, in lower case */
export function seamOf(before: string, after: string, words: ReadonlySet<string>): Seam {
  const seen = before.slice(-SEEN_CHARACTERS)
  const end = seen.trimEnd()
  const next = after.trimStart()
  if (end.endsWith(SOFT_HYPHEN)) return { cut: seen.length - end.length + 1, blank: '' }
  if (/[-\u2010]$/.test(end)) return hyphenSeam(seen, end, next, words)
  const isJoined = isCjk(lastCharacter(end)) && isCjk(firstCharacter(next))
  return { cut: 0, blank: isJoined ? '' : ' ' }
}

function hyphenSeam(before: string, end: string, next: string, words: ReadonlySet<string>): Seam {
  const head = /(\p{L}+(?:[-\u2010]\p{L}+)*)[-\u2010]$/u.exec(end)?.[1]
  const tail = /^\p{L}+(?:[-\u2010]\p{L}+)*/u.exec(next)?.[0]
  if (head === undefined || tail === undefined) return { cut: 0, blank: /\d[-\u2010]$/.test(end) ? '' : ' ' }
  const isBetweenLowerCase = isLowerCase(lastCharacter(head)) && isLowerCase(firstCharacter(tail))
  if (!isBetweenLowerCase || isCompound(head, tail, words)) return { cut: 0, blank: '' }
  return { cut: before.length - end.length + 1, blank: '' }
}

function isCompound(head: string, tail: string, words: ReadonlySet<string>): boolean {
  const first = head.toLowerCase().replaceAll('\u2010', '-')
  const second = tail.toLowerCase().replaceAll('\u2010', '-')
  if (words.has(first + second)) return false
  if (words.has(`${first}-${second}`) || COMPOUND_PATTERN.test(first)) return true
  return first.length >= LEAST_HALF && second.length >= LEAST_HALF && words.has(first) && words.has(second)
}

/** Joins the texts of lines. */
export function flowText(texts: readonly string[], words: ReadonlySet<string>): string {
  let text = ''
  for (const next of texts) {
    if (text === '') text = next
    else {
      const seam = seamOf(text, next, words)
      text = text.slice(0, text.length - seam.cut) + seam.blank + next
    }
  }
  return text.replaceAll(SOFT_HYPHEN, '')
}
