import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { GatewayConfig, KeyLimits, RedisSection } from '../config/settings.js'
import type { WorkerCount } from '../config/value-types.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { LIMIT_NAMES, type LimitName } from '../core/quota.js'
import type { RequestContext } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { byLabel, Metrics, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { LocalLeases, MemoryWindows, WINDOW_SECONDS } from './counters.js'
import { KeyLimiter, LimitCounters } from './key-limiter.js'
import { RedisConnection } from './redis-connection.js'
import { RedisLeases, RedisWindows, SharedLeases, SharedWindows } from './redis-counters.js'
import { type QuotaSettings, RequestQuota } from './request-quota.js'

/** How long a lease of a process that was killed still counts. */
const LEASE_MS = 15_000
const HEARTBEAT_MS = 5_000

/** A command given up after the deadline may still be carried out; nothing is given back so close to a window's end. */
const MARGIN_DEADLINES = 2

/** Where limits are counted: in this process, or in Redis with this process as the fallback. */
export interface CounterStore {
  readonly counters: LimitCounters
  readonly isShared: boolean
  readonly isUnavailable: () => boolean
  /** Never rejects; resolves also when Redis cannot be reached. */
  readonly open: () => Promise<void>
  readonly close: () => Promise<void>
}

/** `processes`: how many of them share each limit without knowing of each other, unless there is Redis. */
export function createCounterStore(
  { url, timeoutMs, localShare }: RedisSection,
  processes: number,
  logger: Pick<Logger, 'info' | 'warn'>,
): CounterStore {
  if (url === undefined) return localStore(1 / processes)
  const connection = new RedisConnection(url, timeoutMs, logger)
  const share = localShare / processes
  const windows = new SharedWindows(
    new RedisWindows(connection, MARGIN_DEADLINES * timeoutMs),
    new MemoryWindows(share),
  )
  const leases = new SharedLeases(new RedisLeases(connection, LEASE_MS), share)
  connection.onReconnect(() => void leases.renew())
  const heartbeat = setInterval(() => void leases.renew(), HEARTBEAT_MS).unref()
  return {
    counters: new LimitCounters(windows, leases),
    isShared: true,
    isUnavailable: () => connection.isUnavailable,
    open: () => connection.open(),
    close: async () => {
      clearInterval(heartbeat)
      await connection.close()
    },
  }
}

const localStore = (share: number): CounterStore => ({
  counters: new LimitCounters(new MemoryWindows(share), new LocalLeases(share)),
  isShared: false,
  isUnavailable: () => false,
  open: () => Promise.resolve(),
  close: () => Promise.resolve(),
})

/** What Prometheus learns of limits. */
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

  readonly countRefusal = (name: LimitName): void => {
    this.refusals[name]++
  }
}

/** Bearers counted separately within a minute: more can be invented, and each has counters of its own. */
const MAXIMUM_BEARERS = 10_000

/** All bearers beyond them. */
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
    return this.hasCapacity(scope) ? scope : OTHER_BEARERS
  }

  /** Where the caller's calls were counted so far: looking takes no room. */
  find(caller: Caller): string {
    if (caller.bearer === undefined) return keyScope(caller)
    const scope = ownerOf(caller)
    return this.bearers.has(scope) || this.bearers.size < this.maximumBearers ? scope : OTHER_BEARERS
  }

  /** Who comes at least once a minute stays; who was idle for longer has no open window any more. */
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
 * The one place where calls are counted against the limits of their key: every route and every socket begins here, and
 * whatever is taken here is given back when the call is over, however it ends.
 */
@Injectable()
export class RateLimiter implements OnModuleInit, OnApplicationShutdown {
  private readonly store: CounterStore
  private readonly metrics: LimitMetrics
  private readonly idPrefix = `${randomBytes(8).toString('hex')}:`
  private count = 0
  private readonly scopes = new LimitScopes()
  /** Of keys without limits of their own. */
  private defaultLimits: KeyLimits | undefined
  private quotaSettings: QuotaSettings
  /** Of callers whom the key table knows: the same key is the same caller until it changes. */
  private keyLimiters = new WeakMap<Caller, KeyLimiter>()
  private readonly processes: number
  private hasWarned = false

  constructor(
    config: ConfigStore,
    hooks: RequestHooks,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {
    const { redis, server } = config.current
    this.processes = processesOf(server.workers)
    this.store = createCounterStore(redis, this.processes, logger)
    this.metrics = new LimitMetrics(metrics, this.store.isUnavailable)
    this.defaultLimits = config.current.auth.defaultLimits
    this.quotaSettings = this.quotaSettingsOf(config.current)
    config.onChange((next) => {
      this.defaultLimits = next.auth.defaultLimits
      this.quotaSettings = this.quotaSettingsOf(next)
      this.keyLimiters = new WeakMap()
    })
    hooks.onFinished((call, outcome) => {
      if (call.quota instanceof RequestQuota) call.quota.end(outcome)
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
  begin(call: RequestContext, isSession = false): true | Promise<true> {
    const limits = call.caller.limits ?? this.defaultLimits
    if (limits === undefined || call.endpoint?.rateLimit === 'exempt') return true
    const keyLimiter = this.keyLimiterFor(call.caller, limits)
    if (!keyLimiter.isLimited) return true
    const quota = new RequestQuota(call, keyLimiter, `${this.idPrefix}${++this.count}`, this.quotaSettings)
    // Before the first wait: the caller may leave during it.
    call.quota = quota
    return quota.enter({ countsAsRequest: isSession || !READS.has(call.method), isSession })
  }

  /** A caller's limits and where they are counted, to look at. */
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

  /** The configuration is refused where its keys would be counted so; those of the store may come at any time. */
  private warnOfParts({ keyId }: Caller, limits: KeyLimits): void {
    if (this.hasWarned || this.processes === 1 || this.store.isShared || Object.keys(limits).length === 0) return
    this.hasWarned = true
    this.logger.warn(
      { keyId, workers: this.processes },
      'a key has limits, of which each worker allows a part by itself, at least 1: set redis.url, or server.workers to 1',
    )
  }

  private quotaSettingsOf({ auth: { expectedOutputTokens } }: GatewayConfig): QuotaSettings {
    return { countRefusal: this.metrics.countRefusal, expectedOutputTokens }
  }

  /** Whether what is counted here is counted for all replicas together, at this moment. */
  get isShared(): boolean {
    return this.store.isShared && !this.store.isUnavailable()
  }
}

const processesOf = (workers: WorkerCount): number => (workers === 'auto' ? availableParallelism() : workers)

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The limits of keys, for the guards that know who calls. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimiterModule {}
