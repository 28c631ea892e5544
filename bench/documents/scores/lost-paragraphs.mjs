import { wordsOf } from './words.mjs'

const SHORTEST = 200
const LENGTH = 3
const MOST_MISSING = 0.4

const runs = (text) => {
  const words = wordsOf(text)
  return words.slice(LENGTH - 1).map((_, at) => words.slice(at, at + LENGTH).join(' '))
}

/** Paragraphs of more than 200 characters, and those of which two fifths of the runs of three words are missing: {truth, lost}. */
export function lostParagraphs(blocks, text) {
  const found = new Set(runs(text))
  const long = blocks.filter(({ type, text: said }) => type === 'paragraph' && said.length > SHORTEST)
  const isLost = ({ text: said }) => {
    const expected = runs(said)
    return expected.filter((run) => !found.has(run)).length > expected.length * MOST_MISSING
  }
  return { truth: long.length, lost: long.filter(isLost).length }
}
