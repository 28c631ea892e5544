import { isRecord } from '../../../core/validation-rules.js'
import type { Seals } from '../../translator.js'
import { parsedOr } from '../members.js'

/** Text that a chat upstream thought, for a client to keep: unlike the blocks of messages upstreams it is an object. */
export const sealReasoning = (seals: Seals, reasoning: string): string => seals.seal(JSON.stringify({ reasoning }))

/** undefined for what was not sealed so, or not for this owner. */
export function openReasoning(seals: Seals, sealed: string): string | undefined {
  const value = parsedOr(seals.open(sealed))
  return isRecord(value) && typeof value['reasoning'] === 'string' ? value['reasoning'] : undefined
}
