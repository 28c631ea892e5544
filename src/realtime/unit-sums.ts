import type { Units } from '../core/request-context.js'

/** Names that an upstream may add up over a long session; more would be memory that grows with what it invents. */
const MAXIMUM_NAMES = 64

/** Both counts by name, nested as they are. Where one has a number and the other an object, the first stays. */
export function sumOfUnits(sums: Units | undefined, units: Units): Units {
  const result: Record<string, number | Units> = { ...sums }
  for (const [name, value] of Object.entries(units)) {
    const sum = result[name]
    if (sum === undefined && Object.keys(result).length >= MAXIMUM_NAMES) continue
    if (typeof value === 'number') {
      if (sum === undefined || typeof sum === 'number') result[name] = (sum ?? 0) + value
    } else if (typeof sum !== 'number') {
      result[name] = sumOfUnits(sum, value)
    }
  }
  return result
}
