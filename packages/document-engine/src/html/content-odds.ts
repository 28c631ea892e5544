import { FEATURES } from './block-features.js'
import { BASE_LOGIT, TREES } from './content-model.js'
import { subjectsOf } from './feature-subject.js'
import type { PageTraits } from './page-traits.js'

const LEAF = -1
const SPLIT = /^(\d+)<(.+)$/

/** A decision tree in one row: what is below the threshold goes on with the next entry, the rest at `otherwise`. */
interface DecisionTree {
  readonly feature: Int16Array
  /** The threshold of a split, or what a leaf adds. */
  readonly value: Float64Array
  readonly otherwise: Int16Array
}

const FOREST: readonly DecisionTree[] = TREES.map(readDecisionTree)

/** Of each block, the logarithm of the odds that it belongs to what the page is there for. */
export function contentOdds(traits: PageTraits): Float64Array {
  const odds = new Float64Array(traits.lines.length)
  const row = new Float64Array(FEATURES.length)
  for (const subject of subjectsOf(traits)) {
    for (const [at, [, value]] of FEATURES.entries()) row[at] = value(subject)
    odds[subject.index] = FOREST.reduce((sum, tree) => sum + decide(tree, row), BASE_LOGIT)
  }
  return odds
}

function decide({ feature, value, otherwise }: DecisionTree, row: Float64Array): number {
  let at = 0
  for (;;) {
    const column = feature[at] ?? LEAF
    const limit = value[at] ?? 0
    if (column === LEAF) return limit
    at = (row[column] ?? 0) < limit ? at + 1 : (otherwise[at] ?? 0)
  }
}

function readDecisionTree(text: string): DecisionTree {
  const entries = text.split(' ')
  const tree = {
    feature: new Int16Array(entries.length),
    value: new Float64Array(entries.length),
    otherwise: new Int16Array(entries.length),
  }
  const readFrom = (at: number): number => {
    const split = SPLIT.exec(entries[at] ?? '')
    tree.feature[at] = split === null ? LEAF : Number(split[1])
    tree.value[at] = Number(split === null ? entries[at] : split[2])
    if (split === null) return at + 1
    const otherwise = readFrom(at + 1)
    tree.otherwise[at] = otherwise
    return readFrom(otherwise)
  }
  readFrom(0)
  return tree
}
