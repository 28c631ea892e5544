/** Longer names are compared with none: the work grows with the product of both lengths. */
const LONGEST_COMPARED = 64
/** A name that differs in more characters is another name: this share of them, at least two, where half of the name is right. */
const LARGEST_SHARE = 0.3

/**
 * The name among `names` that was probably meant by one that is not there: the one with the fewest differing characters,
 * whatever their case; undefined when none is near. `isUsable` is asked only for names that are near; names are compared as `spell`
 * spells them.
 */
export function nearestName(
  wrong: string,
  names: Iterable<string>,
  isUsable: (name: string) => boolean = () => true,
  spell = (name: string): string => name.toLowerCase(),
): string | undefined {
  if (wrong.length > LONGEST_COMPARED) return undefined
  const sought = spell(wrong)
  let best: string | undefined
  let bestDistance = Math.min(Math.max(2, Math.floor(sought.length * LARGEST_SHARE)), Math.floor(sought.length / 2)) + 1
  for (const name of names) {
    if (name.length > LONGEST_COMPARED || Math.abs(name.length - wrong.length) >= bestDistance) continue
    const distance = editDistance(sought, spell(name), bestDistance)
    if (distance < bestDistance && isUsable(name)) [best, bestDistance] = [name, distance]
  }
  return best
}

/** Characters to insert, delete or replace (Levenshtein); at least `limit` when it would be more. */
function editDistance(from: string, to: string, limit: number): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    if (Math.min(...current) >= limit) return limit
    previous = current
  }
  return previous[to.length] ?? limit
}
