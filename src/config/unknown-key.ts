/** No setting is longer or holds more digits; anything else may be a secret that slipped into a key's place. */
const SHOWABLE = /^(?:[A-Za-z_-]{1,40}|[A-Za-z0-9_-]{1,12})$/

/** The fault for a key that is not among `known`, with the nearest known one when there is a near one. */
export function describeUnknownKey(name: string, known: readonly string[]): string {
  const title = SHOWABLE.test(name) ? `unknown key "${name}"` : 'unknown key (not shown, it may be a secret)'
  const near = nearest(name, known)
  if (near !== undefined) return `${title}; did you mean "${near}"?`
  return known.length === 0 ? `${title}; none is allowed here` : `${title}; allowed: ${known.join(', ')}`
}

/** The candidate that needs the fewest edits: at most a third of its length, or two where half of it is right. */
function nearest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 64) return undefined
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain(name), plain(candidate)) }))
    .filter(
      ({ candidate, distance }) => distance <= Math.max(2, candidate.length / 3) && distance * 2 <= candidate.length,
    )
    .sort((left, right) => left.distance - right.distance)
  return ranked[0]?.candidate
}

/** `base_url`, `base-url` and `BASEURL` are spellings of `baseUrl`. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}

/** Levenshtein distance: insertions, deletions and substitutions, one row of the table at a time. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}
