import { setImmediate as nextTurn } from 'node:timers/promises'
import { Call } from '../../src/common/http/call.js'
import { CallAllowance, type CallKind } from '../../src/common/limits/call-allowance.js'
import { LimitAccount } from '../../src/common/limits/limit-account.js'
import { LimitLedger } from '../../src/common/limits/limit-ledger.js'
import { LocalLeases } from '../../src/common/limits/limit-leases.js'
import type { LimitName } from '../../src/common/limits/limit-names.js'
import { MemoryWindows } from '../../src/common/limits/memory-windows.js'
import type { KeyLimits } from '../../src/config/gateway-config.js'

export const SCOPE = 'key:team-a'
export const WORK: CallKind = { isWork: true, isSession: false }
export const SESSION: CallKind = { isWork: true, isSession: true }
export const READ: CallKind = { isWork: false, isSession: false }

/** A call and its account, as the gate makes them. */
export interface LimitedCall {
  readonly call: Call
  readonly allowance: CallAllowance
  /** Over with an answer of this status; with `usage` where the upstream has reported any. */
  end(ending?: {
    readonly status?: number
    readonly usage?: Call['log']['usage']
    readonly left?: boolean
  }): Promise<void>
}

/** Calls of one key, counted in this process. */
export class LimitedCalls {
  readonly ledger = new LimitLedger(new MemoryWindows(), new LocalLeases())
  readonly refusals: LimitName[] = []
  private count = 0

  constructor(readonly limits: KeyLimits) {}

  get account(): LimitAccount {
    return new LimitAccount(this.limits, SCOPE, this.ledger)
  }

  make(path = '/v1/chat/completions'): LimitedCall {
    const call = new Call(`req_${++this.count}`, 'POST', path, performance.now())
    const noteRefusal = (name: LimitName): void => void this.refusals.push(name)
    const allowance = new CallAllowance(call, this.account, String(this.count), noteRefusal)
    call.allowance = allowance
    return {
      call,
      allowance,
      end: async ({ status = 200, usage, left = false } = {}) => {
        call.log.usage = usage
        if (left) call.departure.announce()
        allowance.end({ status: left ? 499 : status, left, totalMs: 1, gatewayMs: 1 })
        await nextTurn()
      },
    }
  }

  /** Counted in already. */
  async enter(kind: CallKind = WORK, path?: string): Promise<LimitedCall> {
    const made = this.make(path)
    await made.allowance.enter(kind)
    return made
  }

  /** What is used of each limit, in the units of the settings. */
  async used(): Promise<{
    readonly requests: number
    readonly tokens: number
    readonly audioSeconds: number
    readonly underWay: number
  }> {
    const { account } = this
    const of = async (name: 'requestsPerMinute' | 'tokensPerMinute' | 'audioSecondsPerMinute'): Promise<number> =>
      (await account.peek(name))?.used ?? 0
    return {
      requests: await of('requestsPerMinute'),
      tokens: await of('tokensPerMinute'),
      audioSeconds: (await of('audioSecondsPerMinute')) / 1000,
      underWay: await account.inUse('concurrency'),
    }
  }
}

/** An upstream has been asked, and has begun to answer. */
export function served({ call }: LimitedCall, bytesOut = 100): void {
  call.log.tried.push({ channelId: 'p1-main', startedAtMs: performance.now() })
  call.log.bytesOut = bytesOut
}

export const tokens = (prompt: number, completion: number): NonNullable<Call['log']['usage']> => ({
  units: { prompt_tokens: prompt, completion_tokens: completion },
  estimated: false,
})
