import { hyphenPoints } from './hyphenation.mjs'
import { isFixedPitch, textWidth } from './fonts.mjs'

const FAR_EAST = /[\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]/
const NEVER_FIRST = /[，。、）]/

/**
 * Pieces of content as words: {parts, hasGap}, a part being {text, face, size, url?}. A word may have several parts; no
 * gap stands before a character of a script that is written without blanks.
 */
export function toWords(content, faceOf, size) {
  const words = []
  let glued = false
  for (const { text, ...marks } of content) {
    const part = (one) => ({ text: one, face: faceOf(marks), size, ...(marks.url && { url: marks.url }) })
    for (const unit of text.match(/\s+|[^\s\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]+|\S/gu) ?? []) {
      if (/^\s/.test(unit)) {
        glued = false
        continue
      }
      const farEast = FAR_EAST.test(unit)
      if (words.length > 0 && (NEVER_FIRST.test(unit) || (glued && !farEast))) words.at(-1).parts.push(part(unit))
      else words.push({ parts: [part(unit)], hasGap: !farEast && !glued })
      glued = true
    }
  }
  return words
}

export const wordWidth = ({ parts }) =>
  parts.reduce((sum, { face, text, size }) => sum + textWidth(face, text) * size, 0)

const blankWidth = ({ face, size }) =>
  face.kind === 'tex' && !isFixedPitch(face) ? size / 3 : textWidth(face, ' ') * size

/** Between two words of a line: of two faces, the narrower blank. */
export const gapWidth = (before, word) =>
  word.hasGap ? Math.min(blankWidth(before.parts.at(-1)), blankWidth(word.parts[0])) : 0

/** The longest beginning of a word that fits, with its hyphen, and the rest; undefined when none does. */
function divided(word, room, isHyphenated) {
  const [part, ...others] = word.parts
  if (others.length > 0 || part.url || isFixedPitch(part.face) || part.face.kind === 'cid') return undefined
  const [, before, letters] = /^([^a-z]*)([a-z]*)/i.exec(part.text)
  const soft = isHyphenated ? hyphenPoints(letters).map((at) => [before.length + at, '-']) : []
  const hard = Array.from(part.text.matchAll(/(?<=[a-z]{2})-(?=[a-z]{2})/g), ({ index }) => [index + 1, ''])
  for (const [at, hyphen] of [...soft, ...hard].sort(([one], [other]) => other - one)) {
    const head = { ...word, parts: [{ ...part, text: part.text.slice(0, at) + hyphen }] }
    if (wordWidth(head) <= room) return [head, { hasGap: true, parts: [{ ...part, text: part.text.slice(at) }] }]
  }
  return undefined
}

/**
 * Fills lines of `width` points (the first by `firstIndent` less) in order; a line is {words, width, isLast, indent}, its width
 * without stretching.
 */
export function breakLines(words, width, { firstIndent = 0, isHyphenated = false } = {}) {
  const lines = []
  const rest = [...words]
  let line = { words: [], width: 0, indent: firstIndent }
  while (rest.length > 0) {
    const word = rest.shift()
    const gap = line.words.length === 0 ? 0 : gapWidth(line.words.at(-1), word)
    const room = width - line.indent - line.width - gap
    const needed = wordWidth(word)
    if (needed <= room || line.words.length === 0) {
      line.words.push(word)
      line.width += gap + needed
      continue
    }
    const halves = divided(word, room, isHyphenated)
    if (halves) {
      line.words.push(halves[0])
      line.width += gap + wordWidth(halves[0])
    }
    rest.unshift(halves ? halves[1] : word)
    lines.push({ ...line, isLast: false })
    line = { words: [], width: 0, indent: 0 }
  }
  return [...lines, { ...line, isLast: true }]
}
