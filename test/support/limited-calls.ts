import { setImmediate as nextTurn } from 'node:timers/promises'
import type { KeyLimits } from '../../src/config/settings.js'
import type { EstimatedUse, LimitName } from '../../src/core/quota.js'
import { RequestContext } from '../../src/core/request-context.js'
import {
  type Addition,
  type LimitLeases,
  type LimitWindows,
  LocalLeases,
  MemoryWindows,
  type WindowStore,
  type WindowState,
} from '../../src/limits/counters.js'
import { KeyLimiter, LimitCounters } from '../../src/limits/key-limiter.js'
import { RequestQuota, type CallKind } from '../../src/limits/request-quota.js'
import { contextAt } from './endpoints.js'
import { attemptRecord } from './raw-upstream.js'

/** The windows of a process, whose answers come a little later, as those of Redis do. */
class AwaitedWindows implements LimitWindows, WindowStore {
  private readonly windows = new MemoryWindows()

  async add(...asked: Parameters<LimitWindows['add']>): Promise<Addition | undefined> {
    await Promise.resolve()
    return { ...this.windows.add(...asked), store: this }
  }

  async debit(...asked: Parameters<LimitWindows['debit']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.debit(...asked)
  }

  async giveBack(...asked: Parameters<WindowStore['giveBack']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.giveBack(...asked)
  }

  async peek(...asked: Parameters<LimitWindows['peek']>): Promise<WindowState | undefined> {
    await Promise.resolve()
    return this.windows.peek(...asked)
  }
}

/** The same for what is under way at one time. */
class AwaitedLeases implements LimitLeases {
  private readonly leases = new LocalLeases()

  async take(...asked: Parameters<LimitLeases['take']>): Promise<boolean> {
    await Promise.resolve()
    return this.leases.take(...asked)
  }

  release(key: string, id: string): void {
    this.leases.release(key, id)
  }

  async count(key: string): Promise<number> {
    await Promise.resolve()
    return this.leases.count(key)
  }
}

const SCOPE = 'key:team-a'
export const WORK: CallKind = { countsAsRequest: true, isSession: false }
export const SESSION: CallKind = { countsAsRequest: true, isSession: true }
export const READ: CallKind = { countsAsRequest: false, isSession: false }

/** What an answer without a maximum is taken for. */
export const EXPECTED_OUTPUT_TOKENS = 50

/** A call and its quota, as the gateway makes them when a request is authorized. */
export interface LimitedCall {
  readonly call: RequestContext
  readonly quota: RequestQuota
  /** Rejects where the call is refused. */
  enter(kind: CallKind): Promise<void>
  expect(use: EstimatedUse): Promise<void>
  /** Of a response that is written now. */
  headers(): Readonly<Record<string, string>>
  /** Over with an answer of this status; with `usage` where the upstream has reported any. */
  end(outcome?: {
    readonly status?: number
    readonly usage?: RequestContext['log']['usage']
    readonly left?: boolean
  }): Promise<void>
}

/** Calls of one key, counted in this process: at once, or (`awaited`) with answers that come later, as those of Redis. */
export class LimitedCalls {
  readonly ledger: LimitCounters
  readonly refusals: LimitName[] = []
  private count = 0

  constructor(
    readonly limits: KeyLimits,
    kind: 'at once' | 'awaited' = 'at once',
  ) {
    this.ledger =
      kind === 'at once'
        ? new LimitCounters(new MemoryWindows(), new LocalLeases())
        : new LimitCounters(new AwaitedWindows(), new AwaitedLeases())
  }

  get account(): KeyLimiter {
    return new KeyLimiter(this.limits, SCOPE, this.ledger)
  }

  make(path = '/v1/chat/completions'): LimitedCall {
    const call = contextAt('POST', path, `req_${++this.count}`, performance.now())
    const settings = {
      countRefusal: (name: LimitName): void => void this.refusals.push(name),
      expectedOutputTokens: EXPECTED_OUTPUT_TOKENS,
      mayHideTokens: ({ reasons }: RequestContext['log']): boolean => reasons === true,
      isRedisAway: () => false,
    }
    const quota = new RequestQuota(call, this.account, String(this.count), settings)
    call.quota = quota
    return {
      call,
      quota,
      enter: async (kind) => {
        await quota.enter(kind)
      },
      expect: async (use) => {
        await quota.reserveEstimate(use)
      },
      headers: () => call.ownHeaders(),
      end: async ({ status = 200, usage, left = false } = {}) => {
        call.log.usage = usage
        if (left) call.disconnect.abort()
        quota.end({ status: left ? 499 : status, left, totalMs: 1, gatewayMs: 1 })
        await nextTurn()
      },
    }
  }

  /** Counted in already. */
  async enter(kind: CallKind = WORK, path?: string): Promise<LimitedCall> {
    const made = this.make(path)
    await made.enter(kind)
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
  call.log.attempts.push(attemptRecord('p1-main', performance.now(), { upstreamMs: 5 }))
  call.log.bytesOut = bytesOut
}

export const tokens = (prompt: number, completion: number): NonNullable<RequestContext['log']['usage']> => ({
  units: { prompt_tokens: prompt, completion_tokens: completion },
  estimated: false,
})
