import { counted, f1Of, overlap, wordsOf } from './words.mjs'

/** F1 over the words of a page in lower case, however they are ordered; 1 when both texts have none. */
export function wordF1(truth, read) {
  const [expected, found] = [truth, read].map((text) => wordsOf(text.toLowerCase()))
  if (expected.length === 0 || found.length === 0) return expected.length === found.length ? 1 : 0
  const right = overlap(counted(expected), counted(found))
  return f1Of(right / found.length, right / expected.length)
}
