import { firstCharacter, isCjk, isLowerCase, lastCharacter } from './characters.js'

const SOFT_HYPHEN = '\u00ad'
/** Prefixes whose compounds keep their hyphen when the document shows neither form. */
const COMPOUND_PATTERN = /(?:^|[^\p{L}])(?:self|well|all|half|cross|ex|quasi|so)$/iu

/** Shorter halves of broken words are too often words themselves. */
const LEAST_HALF = 4

/** Of the end of a text: no word that is broken is longer, and patterns would begin anew at each letter before it. */
const SEEN_CHARACTERS = 200

/** How the end of a line meets the next: `cut` characters are taken off its end, `blank` says what comes between. */
interface Seam {
  readonly cut: number
  readonly blank: '' | ' '
}

/** `words` are those of the document, in lower case. */
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

/** Texts of lines as one text. */
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
