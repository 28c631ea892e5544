import type { Caller } from '../core/caller.js'
import { ownerOf } from '../core/owner.js'
import { WINDOW_SECONDS } from './limit-windows.js'

/** Bearers that are told apart within a minute; anybody can invent more, and each is counted under names of its own. */
const MAXIMUM_BEARERS = 10_000

/** Whoever comes on top of them. */
export const OTHER_BEARERS = 'bearer:others'

const IDLE_MS = 1000 * WINDOW_SECONDS

/**
 * Whose limits are counted together: those of a known key by its id, those of callers with bearers of their own by a
 * part of the bearer's digest, never the bearer. Fit for a header, a log and a message.
 */
export class LimitScopes {
  /** When each bearer came last, on the performance clock; the longest idle comes first. */
  private readonly bearers = new Map<string, number>()

  constructor(private readonly maximumBearers = MAXIMUM_BEARERS) {}

  /** Where a caller's next call is counted. */
  of(caller: Caller): string {
    if (caller.bearer === undefined) return keyScope(caller)
    const scope = ownerOf(caller)
    return this.hasRoom(scope) ? scope : OTHER_BEARERS
  }

  /** Where the caller's calls were counted so far: looking takes no room. */
  find(caller: Caller): string {
    if (caller.bearer === undefined) return keyScope(caller)
    const scope = ownerOf(caller)
    return this.bearers.has(scope) || this.bearers.size < this.maximumBearers ? scope : OTHER_BEARERS
  }

  /** Who comes at least once a minute stays; who was idle for longer has no open window any more. */
  private hasRoom(scope: string): boolean {
    const nowMs = performance.now()
    if (!this.bearers.delete(scope)) this.forgetIdle(nowMs)
    if (this.bearers.size >= this.maximumBearers) return false
    this.bearers.set(scope, nowMs)
    return true
  }

  private forgetIdle(nowMs: number): void {
    for (const [scope, cameAtMs] of this.bearers) {
      if (nowMs - cameAtMs < IDLE_MS) return
      this.bearers.delete(scope)
    }
  }
}

const keyScope = ({ keyId }: Caller): string => `key:${keyId}`
