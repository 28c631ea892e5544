import { treeDistance } from './tree-distance.mjs'

const collapsed = (text) => text.replace(/\s+/g, ' ').trim()

/** How many characters must be changed, added or left out, divided by the length of the longer text. */
export function normalisedEdits(one, other) {
  if (one === other) return 0
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[other.length] / Math.max(one.length, other.length)
}

const tree = (rows) => ({
  tag: 'table',
  children: rows.map((cells) => ({
    tag: 'tr',
    children: cells.map((text) => ({ tag: 'td', text: collapsed(text), children: [] })),
  })),
})

const sizeOf = (rows) => 1 + rows.length + rows.reduce((sum, cells) => sum + cells.length, 0)

function cost(one, other) {
  if (one.tag !== other.tag) return 1
  return one.tag === 'td' ? normalisedEdits(one.text, other.text) : 0
}

/**
 * TEDS of two tables given as rows of cells: 1 less the distance of their trees (table, rows, cells with their text)
 * divided by the nodes of the larger one.
 */
export const tableSimilarity = (truth, read) =>
  1 - treeDistance(tree(truth), tree(read), cost) / Math.max(sizeOf(truth), sizeOf(read))

/**
 * Pairs the tables of a document in their order so that the sum of similarities is greatest.
 * @returns {{similarities: number[], spurious: number}} one similarity for each true table (0: not found), and how many
 * tables were read where there is none.
 */
export function pairedTables(truth, read) {
  const similar = truth.map((rows) => read.map((other) => tableSimilarity(rows, other)))
  const best = Array.from({ length: truth.length + 1 }, () => new Float64Array(read.length + 1))
  for (let i = truth.length - 1; i >= 0; i -= 1) {
    for (let j = read.length - 1; j >= 0; j -= 1) {
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + similar[i][j])
    }
  }
  const similarities = truth.map(() => 0)
  const partners = new Set()
  for (let i = 0, j = 0; i < truth.length && j < read.length;) {
    if (best[i][j] === best[i + 1][j]) i += 1
    else if (best[i][j] !== best[i][j + 1]) {
      similarities[i] = similar[i][j]
      partners.add(j)
      i += 1
      j += 1
    } else j += 1
  }
  return { similarities, spurious: read.length - partners.size }
}
