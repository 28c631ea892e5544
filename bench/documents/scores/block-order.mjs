import { tokensOf } from './words.mjs'

/** Tokens of a block by which it is found again. */
const PROBE = 8

/** The most values of a sequence that ascend. */
function longestAscent(values) {
  const ends = []
  for (const value of values) {
    const at = ends.findIndex((end) => end >= value)
    if (at < 0) ends.push(value)
    else ends[at] = value
  }
  return ends.length
}

/** The share of paragraphs and headings whose first words were read, and in the order of the document; 1 without any. */
export function orderOf(blocks, text) {
  const joined = ` ${tokensOf(text).join(' ')} `
  const probes = blocks
    .filter(({ type }) => type === 'paragraph' || type === 'heading')
    .map((block) => ` ${tokensOf(block.text).slice(0, PROBE).join(' ')} `)
    // What stands twice in the truth has no place of its own.
    .filter((probe, index, all) => all.indexOf(probe) === index && all.lastIndexOf(probe) === index)
  if (probes.length === 0) return 1
  const places = probes.map((probe) => joined.indexOf(probe)).filter((place) => place >= 0)
  return longestAscent(places) / probes.length
}
