const WORD = /[\p{L}\p{N}_]+/gu
const TOKEN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}_]+|[^\s\p{L}\p{N}\p{M}_]/gu

/** Runs of letters, digits and underscores, as both public benchmarks take a text apart. */
export const wordsOf = (text) => text.match(WORD) ?? []

/** Words, single characters of scripts without blanks, and single marks of punctuation. */
export const tokensOf = (text) => text.match(TOKEN) ?? []

/** The words of a text in lower case with one blank between them: equal for two ways of writing the same heading. */
export const normalised = (text) => wordsOf(text.normalize('NFKC').toLowerCase()).join(' ')

/** How often each value occurs. */
export function counted(values) {
  const counts = new Map()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/** How many values two such counts have in common. */
export function overlap(one, other) {
  let sum = 0
  for (const [value, count] of one) sum += Math.min(count, other.get(value) ?? 0)
  return sum
}

/** The harmonic mean; 0 when both are. */
export const f1Of = (precision, recall) =>
  precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall)

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
