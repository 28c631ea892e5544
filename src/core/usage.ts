import type { Units, Usage } from './request-context.js'

/** Deeper members of a usage object are not counts of any upstream known. */
const MAXIMUM_DEPTH = 3

/**
 * The counts of an upstream's usage object, nested as it nests them, and nothing but numbers: whatever else stands there
 * has no place in a log. The upstream's figures are the truth; explicit zeros stay zeros. (Flat names made of paths would
 * turn every one of these objects into a dictionary, which costs a twentieth of a relayed call.)
 */
export function reportedUsage(usage: unknown): Usage | undefined {
  const units = typeof usage === 'object' && usage !== null ? countsOf(usage, 1) : undefined
  return units === undefined ? undefined : { units, estimated: false }
}

function countsOf(value: object, depth: number): Units | undefined {
  const counts: Record<string, number | Units> = {}
  let isEmpty = true
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name]
    const count = typeof member === 'number' ? member : nestedCounts(member, depth)
    if (count === undefined) continue
    counts[name] = count
    isEmpty = false
  }
  return isEmpty ? undefined : counts
}

const nestedCounts = (member: unknown, depth: number): Units | undefined =>
  typeof member === 'object' && member !== null && depth < MAXIMUM_DEPTH ? countsOf(member, depth + 1) : undefined
