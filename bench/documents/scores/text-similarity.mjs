import { tokensOf } from './words.mjs'

/** Length of the longest common subsequence, in time of the product of both lengths after equal ends are taken off. */
export function commonLength(one, other) {
  const shorter = Math.min(one.length, other.length)
  let start = 0
  while (start < shorter && one[start] === other[start]) start += 1
  let end = 0
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1
  const [first, second] = [one, other].map((values) => values.slice(start, values.length - end))
  let row = new Uint32Array(second.length + 1)
  for (const value of first) {
    const next = new Uint32Array(second.length + 1)
    for (let at = 0; at < second.length; at += 1) {
      next[at + 1] = second[at] === value ? row[at] + 1 : Math.max(row[at + 1], next[at])
    }
    row = next
  }
  return start + end + row[second.length]
}

/** Twice the length of what both have in common in order, divided by both lengths; 1 for two empty lists. */
export const sequenceSimilarity = (one, other) =>
  one.length + other.length === 0 ? 1 : (2 * commonLength(one, other)) / (one.length + other.length)

/** From 0 to 1: words, and marks of punctuation, that both texts have in the same order. */
export const textSimilarity = (truth, read) => sequenceSimilarity(tokensOf(truth), tokensOf(read))
