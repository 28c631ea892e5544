import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../../config/config-store.js'
import type { KeyLimits } from '../../config/gateway-config.js'
import type { WorkerCount } from '../../config/workers-schema.js'
import type { Caller } from '../auth/caller.js'
import type { Call } from '../http/call.js'
import { CallEndings } from '../observability/call-endings.js'
import type { Logger } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { CallAllowance } from './call-allowance.js'
import { LimitAccount } from './limit-account.js'
import { LimitMetrics } from './limit-metrics.js'
import { scopeOf } from './limit-scope.js'
import { createLimitStore, type LimitStore } from './limit-store.js'

/** Questions about limits and usage are free, so that a caller who has nothing left can ask why. */
const UNCOUNTED_PATHS: ReadonlySet<string> = new Set(['/v1/limits', '/v1/usage', '/v1/usage/records'])

/**
 * The one place where calls are counted against the limits of their key: every route and every socket begins here, and
 * whatever is taken here is given back when the call is over, however it ends.
 */
@Injectable()
export class LimitGate implements OnModuleInit, OnApplicationShutdown {
  private readonly store: LimitStore
  private readonly metrics: LimitMetrics
  private readonly idPrefix = `${randomBytes(8).toString('hex')}:`
  private count = 0
  /** Of keys without limits of their own. */
  private defaultLimits: KeyLimits | undefined

  constructor(config: ConfigStore, endings: CallEndings, metrics: Metrics, @Inject(LOGGER) logger: Logger) {
    const { redis, server } = config.current
    this.store = createLimitStore(redis, processesOf(server.workers), logger)
    this.metrics = new LimitMetrics(metrics, this.store.isAway)
    this.defaultLimits = config.current.auth.defaultLimits
    config.onChange((next) => {
      this.defaultLimits = next.auth.defaultLimits
    })
    endings.watch((call, outcome) => {
      if (call.allowance instanceof CallAllowance) call.allowance.end(outcome)
    })
  }

  onModuleInit(): Promise<void> {
    return this.store.open()
  }

  onApplicationShutdown(): Promise<void> {
    return this.store.close()
  }

  /**
   * Counts a call in, once its caller is known and before anything of it is read. At once for callers without limits;
   * otherwise it rejects with `rate_limited` when a limit is reached.
   */
  begin(call: Call, isSession = false): true | Promise<true> {
    const limits = call.caller.limits ?? this.defaultLimits
    if (limits === undefined || UNCOUNTED_PATHS.has(call.path)) return true
    const account = new LimitAccount(limits, scopeOf(call.caller), this.store.ledger)
    const allowance = new CallAllowance(call, account, `${this.idPrefix}${++this.count}`, this.metrics.noteRefusal)
    // Before the first wait: the caller may leave during it.
    call.allowance = allowance
    return allowance.enter({ isWork: isSession || !READS.has(call.method), isSession })
  }

  /** A caller's limits and where they are counted, to look at. */
  accountOf(caller: Caller): LimitAccount {
    return new LimitAccount(caller.limits ?? this.defaultLimits ?? {}, scopeOf(caller), this.store.ledger)
  }

  /** Whether what is counted here is counted for all replicas together, at this moment. */
  get isShared(): boolean {
    return this.store.isShared && !this.store.isAway()
  }
}

const processesOf = (workers: WorkerCount): number => (workers === 'auto' ? availableParallelism() : workers)

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
