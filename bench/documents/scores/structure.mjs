import { sequenceSimilarity } from './text-similarity.mjs'
import { counted, normalised, overlap, tokensOf } from './words.mjs'

/** What an item may differ by and still be the same one. */
const SAME_ITEM = 0.9
const MARKER = /^\s*\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s+/i

const headingsOf = (blocks) => blocks.filter(({ type, text }) => type === 'heading' && normalised(text) !== '')

/** Headings of one document: how many are true, were read, and are both; `matchedWithLevel` of the same level as well. */
export function headingCounts(truth, read) {
  const [expected, found] = [headingsOf(truth), headingsOf(read)]
  const common = (keyOf) => overlap(counted(expected.map(keyOf)), counted(found.map(keyOf)))
  return {
    truth: expected.length,
    read: found.length,
    matched: common(({ text }) => normalised(text)),
    matchedWithLevel: common(({ text, level }) => `${level} ${normalised(text)}`),
  }
}

/** F1 of such counts, added up over documents: `matched` is the name of the count to take. */
export function headingF1(counts, matched = 'matched') {
  const sum = (name) => counts.reduce((total, one) => total + one[name], 0)
  const all = sum('truth') + sum('read')
  return all === 0 ? 1 : (2 * sum(matched)) / all
}

const itemsOf = (blocks) =>
  blocks.flatMap(({ type, depth, text }) =>
    type === 'item' ? [{ depth, tokens: tokensOf(text.replace(MARKER, '')) }] : [],
  )

/** Items of lists of one document that were read as items, each once; `matchedWithDepth` at the same depth as well. */
export function itemCounts(truth, read) {
  const expected = itemsOf(truth)
  const found = itemsOf(read)
  let matched = 0
  let matchedWithDepth = 0
  for (const { tokens, depth } of expected) {
    const at = found.findIndex((one) => sequenceSimilarity(tokens, one.tokens) >= SAME_ITEM)
    if (at === -1) continue
    const [other] = found.splice(at, 1)
    matched += 1
    if (other.depth === depth) matchedWithDepth += 1
  }
  return { truth: expected.length, matched, matchedWithDepth, spurious: found.length }
}

const LIST_BLOCKS = { table: ({ rows }) => rows.map((cells) => cells.join(' ')).join('\n') }

/** Everything the blocks say, in order, a line for each block and each row of a table. */
export const textOfBlocks = (blocks) => blocks.map((block) => LIST_BLOCKS[block.type]?.(block) ?? block.text).join('\n')
