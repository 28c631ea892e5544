const BEFORE = 3
const AFTER = 3
const LETTERS = /^[a-z]+$/i
const VOWEL = /[aeiouy]/i
const INSEPARABLE = /^(?:[cst]h|ph|ck|qu|[bcdfgpt][lr]|ff|fl|fi|wh|gn)$/i

/** Positions at which a printer might divide a word, ascending: before a consonant that a vowel follows. */
export function hyphenPoints(word) {
  if (!LETTERS.test(word)) return []
  const points = []
  for (let at = BEFORE; at <= word.length - AFTER; at += 1) {
    const [before, here, after] = [word[at - 1], word[at], word[at + 1]]
    const opensSyllable = !VOWEL.test(here) && VOWEL.test(after) && !INSEPARABLE.test(before + here)
    if (opensSyllable && VOWEL.test(word.slice(0, at))) points.push(at)
  }
  return points
}
