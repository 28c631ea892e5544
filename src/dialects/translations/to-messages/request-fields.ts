import type { Verdicts } from '../../verdicts.js'
import { invalidShape, isAbsent, type Members } from '../members.js'

/** Fields that chat and responses have alike, in the words of messages. */

export const SERVICE_TIERS: ReadonlyMap<unknown, string> = new Map([
  ['auto', 'auto'],
  ['default', 'standard_only'],
])

/** Default of temperature and top_p, accepted everywhere. */
const NEUTRAL = 1
/** Smallest top_p accepted while the model thinks. */
const SMALLEST_TOP_P = 0.95

/** Upstreams refuse them from newer models, and all but the neutral ones where the model thinks. */
export function samplingFields(asked: Members, isTaken: boolean, isThinking: boolean, verdicts: Verdicts): Members {
  const kept: Record<string, number> = {}
  for (const name of ['temperature', 'top_p']) {
    const value = asked[name]
    if (isAbsent(value)) continue
    if (typeof value !== 'number') throw invalidShape(name, 'a number')
    const isKept = isTaken && (!isThinking || value === NEUTRAL || (name === 'top_p' && value >= SMALLEST_TOP_P))
    if (isKept) kept[name] = value
    else if (value !== NEUTRAL) verdicts.drop(name)
  }
  return kept
}
