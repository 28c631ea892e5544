import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import type { KeyLimits } from '../config/access-config.js'
import { ConfigStore } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import type { WorkerCount } from '../config/workers-schema.js'
import type { Caller } from '../core/caller.js'
import type { Call } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { CallEndings } from '../observability/request-hooks.js'
import { createLimitStore, type LimitStore } from './counter-store.js'
import { LimitAccount } from './limit-account.js'
import { LimitMetrics } from './limit-metrics.js'
import { LimitScopes } from './limit-scopes.js'
import { type AllowanceTerms, CallAllowance } from './request-quota.js'

/** A caller who has nothing left can ask why. It asks no store: whatever does has its place among those under way. */
const UNCOUNTED_PATH = '/v1/limits'

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
  private readonly scopes = new LimitScopes()
  /** Of keys without limits of their own. */
  private defaultLimits: KeyLimits | undefined
  private terms: AllowanceTerms
  /** Of callers whom the key table knows: the same key is the same caller until it changes. */
  private accounts = new WeakMap<Caller, LimitAccount>()
  private readonly processes: number
  private hasWarned = false

  constructor(
    config: ConfigStore,
    endings: CallEndings,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {
    const { redis, server } = config.current
    this.processes = processesOf(server.workers)
    this.store = createLimitStore(redis, this.processes, logger)
    this.metrics = new LimitMetrics(metrics, this.store.isAway)
    this.defaultLimits = config.current.auth.defaultLimits
    this.terms = this.termsOf(config.current)
    config.onChange((next) => {
      this.defaultLimits = next.auth.defaultLimits
      this.terms = this.termsOf(next)
      this.accounts = new WeakMap()
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
   * Counts a call in, once its caller is known and before anything of it is read. At once for callers without limits, and
   * where this process counts; throws, or rejects with, `rate_limited` when a limit is reached.
   */
  begin(call: Call, isSession = false): true | Promise<true> {
    const limits = call.caller.limits ?? this.defaultLimits
    if (limits === undefined || call.path === UNCOUNTED_PATH) return true
    const account = this.accountFor(call.caller, limits)
    if (!account.isLimited) return true
    const allowance = new CallAllowance(call, account, `${this.idPrefix}${++this.count}`, this.terms)
    // Before the first wait: the caller may leave during it.
    call.allowance = allowance
    return allowance.enter({ isWork: isSession || !READS.has(call.method), isSession })
  }

  /** A caller's limits and where they are counted, to look at. */
  accountOf(caller: Caller): LimitAccount {
    return new LimitAccount(caller.limits ?? this.defaultLimits ?? {}, this.scopes.find(caller), this.store.ledger)
  }

  private accountFor(caller: Caller, limits: KeyLimits): LimitAccount {
    const known = this.accounts.get(caller)
    if (known !== undefined) return known
    this.warnOfParts(caller, limits)
    const account = new LimitAccount(limits, this.scopes.of(caller), this.store.ledger)
    if (caller.bearer === undefined) this.accounts.set(caller, account)
    return account
  }

  /** The configuration is refused where its keys would be counted so; those of the store may come at any time. */
  private warnOfParts({ keyId }: Caller, limits: KeyLimits): void {
    if (this.hasWarned || this.processes === 1 || this.store.isShared || Object.keys(limits).length === 0) return
    this.hasWarned = true
    this.logger.warn(
      { keyId, workers: this.processes },
      'a key has limits, of which each worker allows a part by itself, at least 1: set redis.url, or server.workers to 1',
    )
  }

  private termsOf({ auth: { expectedOutputTokens } }: GatewayConfig): AllowanceTerms {
    return { noteRefusal: this.metrics.noteRefusal, expectedOutputTokens }
  }

  /** Whether what is counted here is counted for all replicas together, at this moment. */
  get isShared(): boolean {
    return this.store.isShared && !this.store.isAway()
  }
}

const processesOf = (workers: WorkerCount): number => (workers === 'auto' ? availableParallelism() : workers)

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
