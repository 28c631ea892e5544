import type { Caller } from '../auth/caller.js'
import { ownerOf } from '../auth/owner.js'

/**
 * Whose limits are counted together: those of a known key by its id, those of callers with bearers of their own by a
 * part of the bearer's digest, never the bearer. Fit for a header, a log and a message.
 */
export const scopeOf = (caller: Caller): string =>
  caller.bearer === undefined ? `key:${caller.keyId}` : ownerOf(caller)
