import { Injectable } from '@nestjs/common'
import type { Caller } from '../core/caller.js'
import { HELD_LIMIT_NAMES, type HeldLimitName, MINUTE_LIMIT_NAMES, type MinuteLimitName } from '../core/limit-names.js'
import type { LimitAccount } from '../limits/limit-account.js'
import { remainingOf, resetMsOf } from '../limits/limit-errors.js'
import { LimitGate } from '../limits/rate-limiter.js'

/** How one limit stands. */
export interface LimitState {
  readonly limit: number
  readonly remaining: number
  /** Until all of it is there again; 0 when all of it is. */
  readonly reset_seconds?: number
  readonly in_use?: number
}

export interface LimitsAnswer {
  readonly object: 'limits'
  /** Whose limits they are: `key:<id>`, or `bearer:` and a part of a digest. */
  readonly scope: string
  /** Whether all replicas count together at this moment. */
  readonly shared: boolean
  /** Only limits that there are. */
  readonly limits: Readonly<Record<string, LimitState>>
}

/** The caller's own limits, as they stand now, on all replicas. */
@Injectable()
export class LimitsService {
  constructor(private readonly gate: LimitGate) {}

  async show(caller: Caller): Promise<LimitsAnswer> {
    const account = this.gate.accountOf(caller)
    const states = await Promise.all([
      ...MINUTE_LIMIT_NAMES.map(async (name) => ({ name, state: await minuteState(account, name) })),
      ...HELD_LIMIT_NAMES.map(async (name) => ({ name, state: await heldState(account, name) })),
    ])
    const limits: Record<string, LimitState> = {}
    for (const { name, state } of states) if (state !== undefined) limits[name] = state
    return { object: 'limits', scope: account.scope, shared: this.gate.isShared, limits }
  }
}

async function minuteState(account: LimitAccount, name: MinuteLimitName): Promise<LimitState | undefined> {
  const limit = account.limits[name]
  if (limit === undefined) return undefined
  const state = await account.peek(name)
  const resetSeconds = Math.ceil(resetMsOf(state) / 1000)
  return { limit, remaining: remainingOf(name, limit, state), reset_seconds: resetSeconds }
}

async function heldState(account: LimitAccount, name: HeldLimitName): Promise<LimitState | undefined> {
  const limit = account.limits[name]
  if (limit === undefined) return undefined
  const inUse = await account.inUse(name)
  return { limit, remaining: Math.max(0, limit - inUse), in_use: inUse }
}
