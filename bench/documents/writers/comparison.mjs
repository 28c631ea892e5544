import { counted, overlap } from '../scores/words.mjs'

const KINDS = ['heading', 'link', 'image', 'item', 'cells', 'program', 'code', 'strong', 'emphasis']
const RUN = 4

const runsOf = (tokens) => counted(tokens.map((_, at) => tokens.slice(at, at + RUN).join(' ')))

/** Of one tree: what it says, how much of it its rendered Markdown says, and what the Markdown had to escape. */
export function differenceOf(truth, read, markdown) {
  const difference = {
    pages: 1,
    samePages: Number(truth.tokens.join(' ') === read.tokens.join(' ')),
    characters: markdown.length,
    escapes: (markdown.match(/\\[!-/:-@[-`{-~]/g) ?? []).length,
    references: (markdown.match(/&#x[\dA-F]+;/g) ?? []).length,
    runs: [truth.tokens.length, overlap(runsOf(truth.tokens), runsOf(read.tokens))],
  }
  for (const kind of KINDS) difference[kind] = [truth[kind].length, overlap(counted(truth[kind]), counted(read[kind]))]
  return difference
}

/** Such differences added up: shares of what was said for runs of four tokens and for each kind. */
export function summed(differences) {
  const sums = {}
  for (const difference of differences)
    for (const [name, value] of Object.entries(difference))
      sums[name] = Array.isArray(value)
        ? value.map((count, at) => count + (sums[name]?.[at] ?? 0))
        : value + (sums[name] ?? 0)
  const shares = Object.entries(sums).map(([name, value]) => [name, Array.isArray(value) ? value[1] / value[0] : value])
  return Object.fromEntries(shares.filter(([, value]) => !Number.isNaN(value)))
}
