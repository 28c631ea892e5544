/** Longer names are compared with none: the work grows with the product of both lengths. */
const LONGEST_COMPARED = 64
/** A name that differs in more characters is another name: this share of them, at least two, where half of the name is right. */
const LARGEST_SHARE = 0.3

interface NearestOptions {
  /** Asked only for names that are near. */
  readonly isUsable?: (name: string) => boolean
  /** The spelling in which names are compared. */
  readonly spell?: (name: string) => string
}

/**
 * The name among `names` that was probably meant by one that is not there: the one with the fewest differing characters,
 * whatever their case; undefined when none is near.
 */
export function nearestName(
  wrong: string,
  names: Iterable<string>,
  { isUsable = () => true, spell = (name) => name.toLowerCase() }: NearestOptions = {},
): string | undefined {
  if (wrong.length > LONGEST_COMPARED) return undefined
  const sought = spell(wrong)
  const half = Math.floor(sought.length / 2)
  let best: string | undefined
  let bestDistance = Math.min(Math.max(2, Math.floor(sought.length * LARGEST_SHARE)), half) + 1
  for (const name of names) {
    const spelled = spell(name)
    if (spelled.length > LONGEST_COMPARED || Math.abs(spelled.length - sought.length) >= bestDistance) continue
    const distance = editDistance(sought, spelled, bestDistance)
    if (distance < bestDistance && isUsable(name)) [best, bestDistance] = [name, distance]
  }
  return best
}

/** Two rows of the table of distances, used again by each comparison. */
let [above, below] = [new Uint8Array(LONGEST_COMPARED + 1), new Uint8Array(LONGEST_COMPARED + 1)]

/** Characters to insert, delete or replace (Levenshtein); at least `limit` when it would be more. */
function editDistance(from: string, to: string, limit: number): number {
  for (let column = 0; column <= to.length; column++) above[column] = column
  for (let row = 1; row <= from.length; row++) {
    below[0] = row
    let least = row
    for (let column = 1; column <= to.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      const distance = Math.min(replaced, (above[column] ?? 0) + 1, (below[column - 1] ?? 0) + 1)
      below[column] = distance
      if (distance < least) least = distance
    }
    if (least >= limit) return limit
    ;[above, below] = [below, above]
  }
  return above[to.length] ?? limit
}
