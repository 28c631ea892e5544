import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { LRUCache } from 'lru-cache'
import { isWritingDialect } from '../config/model-classes.js'
import type { GatewayConfig, KeyLimits, RedisSection } from '../config/settings.js'
import type { WorkerCount } from '../config/value-types.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { LIMIT_NAMES, type LimitName } from '../core/quota.js'
import type { RequestContext, RequestLog } from '../core/request-context.js'
import { reasoningTokensOf } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { byLabel, Metrics, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { WINDOW_SECONDS } from './counters.js'
import { type CounterStore, KeyLimiter, localStore } from './key-limiter.js'
import { type QuotaSettings, RequestQuota } from './request-quota.js'

/**
 * `processes`: the number of processes that share each limit; without Redis, each allows its part. What speaks to Redis is loaded
 * only where there is one.
 */
async function createCounterStore(
  { url, ...section }: RedisSection,
  processes: number,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<CounterStore> {
  if (url === undefined) return localStore(1 / processes)
  const { sharedStore } = await import('./shared-counter-store.js')
  return sharedStore({ url, ...section }, processes, logger)
}

class LimitMetrics {
  private readonly refusals = Object.fromEntries(LIMIT_NAMES.map((name) => [name, 0])) as Record<LimitName, number>

  constructor(metrics: Metrics, isRedisUnavailable: () => boolean) {
    registerCounter(
      metrics,
      {
        name: 'gateway_limit_refusals_total',
        help: 'Requests, and work of realtime sessions, refused by a limit of their key',
        labelNames: ['limit'],
      },
      () => byLabel('limit', this.refusals),
    )
    registerGauge(
      metrics,
      {
        name: 'gateway_redis_away',
        help: 'Redis is configured and away: each process keeps to its own share of the limits',
        labelNames: [],
        aggregator: 'max',
      },
      () => single(Number(isRedisUnavailable())),
    )
  }

  readonly countRefusal = (name: LimitName, times = 1): void => {
    this.refusals[name] += times
  }
}

/** Bearers counted separately within a minute. Bounded, as a client may invent any number of them. */
const MAXIMUM_BEARERS = 10_000

/** Scope of all further bearers. */
export const OTHER_BEARERS = 'bearer:others'

const IDLE_MS = 1000 * WINDOW_SECONDS

/**
 * The scope in which a caller's requests are counted: the id of a known key, or a part of the digest of a caller's own
 * bearer, never the bearer. May be shown in headers, logs and messages.
 */
export class LimitScopes {
  /** When each bearer came last, on the performance clock; the longest idle comes first. */
  private readonly bearers = new Map<string, number>()

  constructor(private readonly maximumBearers = MAXIMUM_BEARERS) {}

  /** The scope of a caller's next request. */
  of(caller: Caller): string {
    if (caller.bearer === undefined) return keyScope(caller)
    const scope = ownerOf(caller)
    return this.hasCapacity(scope) ? scope : OTHER_BEARERS
  }

  /** The scope of the caller's requests so far; registers no bearer. */
  find(caller: Caller): string {
    if (caller.bearer === undefined) return keyScope(caller)
    const scope = ownerOf(caller)
    return this.bearers.has(scope) || this.bearers.size < this.maximumBearers ? scope : OTHER_BEARERS
  }

  /** A bearer idle for over a minute has no open window and is removed. */
  private hasCapacity(scope: string): boolean {
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

/**
 * Applies the limits of a key to its requests and sessions: every route and socket begins here, and leases are released when
 * the request is over. Chooses the key's `KeyLimiter`; the counting is in `counters.ts` and `redis-counters.ts`.
 */
@Injectable()
export class RateLimiter implements OnModuleInit, OnApplicationShutdown {
  /** The one of the configuration from the start of the application on. */
  private store: CounterStore
  private readonly metrics: LimitMetrics
  private readonly idPrefix = `${randomBytes(8).toString('hex')}:`
  private count = 0
  private readonly scopes = new LimitScopes()
  private readonly reasoning = new ReasoningModels()
  /** Limits of keys that have none of their own. */
  private defaultLimits: KeyLimits | undefined
  private quotaSettings: QuotaSettings
  /** By caller of the key table: the object stays the same until its key changes. */
  private keyLimiters = new WeakMap<Caller, KeyLimiter>()
  private readonly processes: number
  private hasWarned = false

  constructor(
    private readonly config: ConfigStore,
    hooks: RequestHooks,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {
    this.processes = processesOf(config.current.server.workers)
    this.store = localStore(1 / this.processes)
    this.metrics = new LimitMetrics(metrics, this.isRedisAway)
    this.defaultLimits = config.current.auth.defaultLimits
    this.quotaSettings = this.quotaSettingsOf(config.current)
    config.onChange((next) => {
      this.defaultLimits = next.auth.defaultLimits
      this.quotaSettings = this.quotaSettingsOf(next)
      this.keyLimiters = new WeakMap()
    })
    hooks.onFinished((call, outcome) => {
      if (isWritingDialect(call.endpoint?.capability ?? 'none')) this.reasoning.learn(call.log)
      if (call.quota instanceof RequestQuota) call.quota.end(outcome)
    })
    hooks.onRepeated(({ quota }, _outcome, times) => {
      if (quota?.refusedBy !== undefined) this.metrics.countRefusal(quota.refusedBy, times)
    })
  }

  async onModuleInit(): Promise<void> {
    this.store = await createCounterStore(this.config.current.redis, this.processes, this.logger)
    await this.store.open()
  }

  onApplicationShutdown(): Promise<void> {
    return this.store.close()
  }

  /**
   * Counts a request before its body is read. Synchronous for callers without limits and when counted in this process;
   * throws, or rejects with, `rate_limited` when a limit is reached.
   */
  begin(call: RequestContext, isSession = false): true | Promise<true> {
    const limits = call.caller.limits ?? this.defaultLimits
    if (limits === undefined || call.endpoint?.rateLimit === 'exempt') return true
    const keyLimiter = this.keyLimiterFor(call.caller, limits)
    if (!keyLimiter.isLimited) return true
    const quota = new RequestQuota(call, keyLimiter, `${this.idPrefix}${++this.count}`, this.quotaSettings)
    // Set before the first await: the client may disconnect during it.
    call.quota = quota
    return quota.enter({ countsAsRequest: isSession || !READS.has(call.method), isSession })
  }

  /** A caller's limits for display; counts nothing. */
  keyLimiterOf(caller: Caller): KeyLimiter {
    return new KeyLimiter(caller.limits ?? this.defaultLimits ?? {}, this.scopes.find(caller), this.store.counters)
  }

  private keyLimiterFor(caller: Caller, limits: KeyLimits): KeyLimiter {
    const known = this.keyLimiters.get(caller)
    if (known !== undefined) return known
    this.warnOfParts(caller, limits)
    const keyLimiter = new KeyLimiter(limits, this.scopes.of(caller), this.store.counters)
    if (caller.bearer === undefined) this.keyLimiters.set(caller, keyLimiter)
    return keyLimiter
  }

  /** Such keys are refused in the configuration, but the store may have some. */
  private warnOfParts({ keyId }: Caller, limits: KeyLimits): void {
    if (this.hasWarned || this.processes === 1 || this.store.isShared || Object.keys(limits).length === 0) return
    this.hasWarned = true
    this.logger.warn(
      { keyId, workers: this.processes },
      'a key has limits, of which each worker allows a part by itself, at least 1: set redis.url, or server.workers to 1',
    )
  }

  private quotaSettingsOf({ auth: { expectedOutputTokens } }: GatewayConfig): QuotaSettings {
    return {
      countRefusal: this.metrics.countRefusal,
      expectedOutputTokens,
      mayHideTokens: this.reasoning.mayHideTokens,
      isRedisAway: this.isRedisAway,
    }
  }

  private readonly isRedisAway = (): boolean => this.store.isUnavailable()

  /** Whether limits are at present counted for all replicas together. */
  get isShared(): boolean {
    return this.store.isShared && !this.store.isUnavailable()
  }
}

/** Models, by channel, of which it is remembered whether they think. */
const MAXIMUM_MODELS = 1_000

/**
 * Which models think without showing it: their figures tell, where neither the catalogue nor the request does. Of a model that
 * has told no figures yet it is assumed.
 */
class ReasoningModels {
  private readonly seen = new LRUCache<string, boolean>({ max: MAXIMUM_MODELS })

  readonly mayHideTokens = (log: RequestLog): boolean => {
    if (log.reasons === true) return true
    return this.seen.get(modelKey(log)) ?? log.reasons === undefined
  }

  /** Learns from the figures of a request that is over. */
  learn(log: RequestLog): void {
    const { usage, reasons } = log
    if (usage === undefined || usage.estimated || reasons === true) return
    const hasReasoned = (reasoningTokensOf(usage.units) ?? 0) > 0
    if (!hasReasoned && reasons === false) return
    const key = modelKey(log)
    if (hasReasoned || !this.seen.has(key)) this.seen.set(key, hasReasoned)
  }
}

const modelKey = ({ channelId = '', model = '' }: RequestLog): string => `${channelId} ${model.slice(0, 256)}`

const processesOf = (workers: WorkerCount): number => (workers === 'auto' ? availableParallelism() : workers)

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The limits of keys, for guards. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimiterModule {}
