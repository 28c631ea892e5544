import { counted, f1Of, mean, overlap, wordsOf } from './words.mjs'

const LENGTH = 4

function shingles(text) {
  const words = wordsOf(text)
  const starts = words.length === 0 ? 0 : Math.max(1, words.length - LENGTH + 1)
  return Array.from({ length: starts }, (_, at) => words.slice(at, at + LENGTH).join(' '))
}

/** Of one page: the shares of its shingles of four words that are right, wrong and missing; all 0 for two empty texts. */
export function shingleShares(truth, read) {
  const [expected, found] = [shingles(truth), shingles(read)]
  const right = overlap(counted(expected), counted(found))
  const all = expected.length + found.length - right
  if (all === 0) return { right: 0, wrong: 0, missing: 0 }
  return { right: right / all, wrong: (found.length - right) / all, missing: (expected.length - right) / all }
}

/**
 * F1 of the mean precision and the mean recall over pages, as the benchmark of article extraction does it: a page
 * without text of its own does not count for recall, one of which nothing was read not for precision.
 */
export function shingleScore(pages) {
  const precision = mean(pages.flatMap(({ right, wrong }) => (right + wrong > 0 ? [right / (right + wrong)] : [])))
  const recall = mean(pages.flatMap(({ right, missing }) => (right + missing > 0 ? [right / (right + missing)] : [])))
  return { precision, recall, f1: f1Of(precision, recall) }
}
