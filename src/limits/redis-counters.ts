import type { Redis } from 'ioredis'
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible'
import { shareOf } from '../core/quota.js'
import {
  type Addition,
  HeldLeases,
  type LimitLeases,
  type LimitWindows,
  WINDOW_SECONDS,
  type WindowStore,
  type WindowState,
} from './counters.js'
import { REDIS_PREFIX, type RedisConnection } from './redis-connection.js'

/** Cached limiters, one for each value of a limit; every key may have its own. */
const MAXIMUM_LIMITERS = 1000

/** A limiter with this limit refuses nothing. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

/**
 * Replaces the library's script, which also counts points that exceed the limit. Here, points that do not fit change
 * nothing and return what the count would have been; points that are given back, and zero points (a peek), never open a
 * window. A window ends by the clock of Redis. If that clock was set back, or a failover led to a slower one, the window
 * is shortened to its usual length. (Negative zero is formatted as `-0`, which Redis does not accept.)
 */
const COUNT_IF_IT_FITS = `
local points = tonumber(ARGV[1])
local windowMs = 1000 * tonumber(ARGV[2])
local limit = tonumber(ARGV[3])
local used = tonumber(redis.call('get', KEYS[1]) or '0')
local leftMs = redis.call('pttl', KEYS[1])
if leftMs == -1 or leftMs > windowMs then
  redis.call('pexpire', KEYS[1], windowMs)
  leftMs = windowMs
end
if points <= 0 and leftMs < 0 then return {0, 0} end
if points > 0 and used + points > limit then
  if leftMs < 0 then leftMs = windowMs end
  return {used + points, leftMs}
end
if used + points < 0 then points = 0 - used end
used = redis.call('incrby', KEYS[1], string.format('%.0f', points))
if leftMs < 0 then
  redis.call('pexpire', KEYS[1], windowMs)
  leftMs = windowMs
end
return {used, leftMs}
`

/** Windows in Redis, shared by all replicas. */
export class RedisWindows implements LimitWindows, WindowStore {
  private readonly limiters = new Map<number, RateLimiterRedis>()

  /** `marginMs`: nothing is given back this close to a window's end; at least the time a command may take. */
  constructor(
    private readonly connection: RedisConnection,
    private readonly marginMs: number,
  ) {}

  add(key: string, points: number, limit: number): Promise<Addition | undefined> {
    const added = async (): Promise<Addition> => {
      const state = stateOf(await this.limiter(limit).penalty(key, points), limit)
      const fits = state.used <= limit
      return {
        ...state,
        store: this,
        fits,
        ...(fits ? { counted: points } : { counted: 0, used: state.used - points }),
      }
    }
    // The local windows have counted the request meanwhile.
    return this.connection.execute(added, ({ counted, endsAtMs }) => {
      if (counted > 0) void this.giveBack(key, counted, limit, endsAtMs)
    })
  }

  debit(key: string, points: number, limit: number): Promise<WindowState | undefined> {
    return this.connection.execute(async () => stateOf(await this.limiter(NO_LIMIT).penalty(key, points), limit))
  }

  giveBack(key: string, points: number, limit: number, endsAtMs: number): Promise<WindowState | undefined> {
    if (performance.now() + this.marginMs >= endsAtMs) return Promise.resolve(undefined)
    const reward = (): Promise<RateLimiterRes> => this.limiter(NO_LIMIT).reward(key, points)
    if (!this.connection.isUnavailable) return this.connection.execute(async () => stateOf(await reward(), limit))
    this.connection.sendUndo(reward)
    return Promise.resolve(undefined)
  }

  peek(key: string, limit: number): Promise<WindowState | undefined> {
    return this.connection.execute(async () => stateOf(await this.limiter(NO_LIMIT).penalty(key, 0), limit))
  }

  /** Limiters hold no counts, so that the cache may be cleared at any time. */
  private limiter(limit: number): RateLimiterRedis {
    const known = this.limiters.get(limit)
    if (known !== undefined) return known
    if (this.limiters.size >= MAXIMUM_LIMITERS) this.limiters.clear()
    const made = new RateLimiterRedis({
      storeClient: this.connection.client,
      keyPrefix: REDIS_PREFIX,
      points: limit,
      duration: WINDOW_SECONDS,
      customIncrTtlLuaScript: COUNT_IF_IT_FITS,
    })
    this.limiters.set(limit, made)
    return made
  }
}

const stateOf = ({ consumedPoints, msBeforeNext }: RateLimiterRes, limit: number): WindowState => ({
  used: Math.max(0, consumedPoints),
  allowed: limit,
  endsAtMs: performance.now() + Math.max(0, msBeforeNext),
})

/** Leases renewed by one command, which blocks Redis meanwhile. */
const RENEWED_AT_ONCE = 500

/**
 * A lease is a member of a sorted set; its score is the time it expires, by the clock of Redis. Expired leases are not
 * counted, so that those of a killed process are freed without it.
 */
const NOW_MS = `
local time = redis.call('time')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
`

/**
 * If the clock was set back, or a failover led to a slower one, leases would expire later by the difference. They are
 * shortened, not removed: most belong to requests in progress, which must stay counted until their next renewal.
 */
const SHORTEN = `
local function shorten(latestMs)
  for _, id in ipairs(redis.call('zrangebyscore', KEYS[1], '(' .. latestMs, '+inf')) do
    redis.call('zadd', KEYS[1], latestMs, id)
  end
end
`

/** Arguments: id, limit, milliseconds. */
const TAKE = `${NOW_MS}${SHORTEN}
redis.call('zremrangebyscore', KEYS[1], '-inf', nowMs)
shorten(nowMs + ARGV[3])
if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('zadd', KEYS[1], nowMs + ARGV[3], ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[3])
return 1
`

/** Arguments: milliseconds, and an id for each key; a key that has several leases is named several times. */
const RENEW = `${NOW_MS}
for i = 1, #KEYS do
  redis.call('zadd', KEYS[i], nowMs + ARGV[1], ARGV[i + 1])
  redis.call('pexpire', KEYS[i], ARGV[1])
end
return 1
`

/** Arguments: milliseconds. */
const COUNT = `${NOW_MS}${SHORTEN}
shorten(nowMs + ARGV[1])
return redis.call('zcount', KEYS[1], '(' .. nowMs, '+inf')
`

interface LeaseCommands {
  takeLease(key: string, id: string, limit: number, leaseMs: number): Promise<number>
  renewLeases(keyCount: number, ...keysLeaseMsAndIds: (string | number)[]): Promise<number>
  countLeases(key: string, leaseMs: number): Promise<number>
}

/** Leases in Redis. Each method resolves with undefined when Redis is unavailable. */
export class RedisLeases {
  private readonly commands: LeaseCommands & Pick<Redis, 'zrem'>

  constructor(
    private readonly connection: RedisConnection,
    private readonly leaseMs: number,
  ) {
    const { client } = connection
    client.defineCommand('takeLease', { numberOfKeys: 1, lua: TAKE })
    client.defineCommand('renewLeases', { lua: RENEW })
    client.defineCommand('countLeases', { numberOfKeys: 1, lua: COUNT })
    this.commands = client as Redis & LeaseCommands
  }

  /** `isWanted` is called for a reply after the timeout: a lease that is no longer held is released. */
  async take(key: string, id: string, limit: number, isWanted: () => boolean): Promise<boolean | undefined> {
    const taken = await this.connection.execute(
      () => this.commands.takeLease(keyOf(key), id, limit, this.leaseMs),
      (lateAnswer) => {
        if (lateAnswer === 1 && !isWanted()) this.release(key, id)
      },
    )
    return taken === undefined ? undefined : taken === 1
  }

  /** Sends all renewals in the same tick, in order, so that a lease released meanwhile is not added again. */
  async renew(leases: Iterable<readonly [key: string, ids: Iterable<string>]>): Promise<void> {
    const keys: string[] = []
    const ids: string[] = []
    for (const [key, held] of leases) {
      for (const id of held) {
        keys.push(keyOf(key))
        ids.push(id)
      }
    }
    if (ids.length > 0) await this.connection.execute(() => Promise.all(this.renewals(keys, ids)))
  }

  release(key: string, id: string): void {
    this.connection.sendUndo(() => this.commands.zrem(keyOf(key), id))
  }

  count(key: string): Promise<number | undefined> {
    return this.connection.execute(() => this.commands.countLeases(keyOf(key), this.leaseMs))
  }

  private renewals(keys: readonly string[], ids: readonly string[]): Promise<number>[] {
    const sent: Promise<number>[] = []
    for (let start = 0; start < ids.length; start += RENEWED_AT_ONCE) {
      const some = keys.slice(start, start + RENEWED_AT_ONCE)
      const theirs = ids.slice(start, start + RENEWED_AT_ONCE)
      sent.push(this.commands.renewLeases(some.length, ...some, this.leaseMs, ...theirs))
    }
    return sent
  }
}

const keyOf = (key: string): string => `${REDIS_PREFIX}:${key}`

/**
 * Leases shared by all replicas. Those of this process are also kept in memory: for renewals, and as the count while
 * Redis is unavailable.
 */
export class SharedLeases implements LimitLeases {
  private readonly local = new HeldLeases()
  private renewing: Promise<void> | undefined
  private isDueAgain = false

  constructor(
    private readonly shared: RedisLeases,
    /** Share of each limit that this process allows while Redis is unavailable. */
    private readonly localShare: number,
  ) {}

  async take(key: string, id: string, limit: number): Promise<boolean> {
    const answer = await this.shared.take(key, id, limit, () => this.local.holds(key, id))
    const isTaken = answer ?? this.local.count(key) < shareOf(limit, this.localShare)
    if (isTaken) this.local.hold(key, id)
    return isTaken
  }

  release(key: string, id: string): void {
    this.local.release(key, id)
    this.shared.release(key, id)
  }

  async count(key: string): Promise<number> {
    return (await this.shared.count(key)) ?? this.local.count(key)
  }

  /**
   * Renews held leases, and adds those taken while Redis was unavailable. All calls during one renewal lead to a single
   * further one.
   */
  renew(): Promise<void> {
    this.isDueAgain = true
    this.renewing ??= this.renewWhileDue()
    return this.renewing
  }

  private async renewWhileDue(): Promise<void> {
    while (this.isDueAgain) {
      this.isDueAgain = false
      await this.shared.renew(this.local.all())
    }
    this.renewing = undefined
  }
}

/** Windows shared by all replicas; those of this process while Redis is unavailable. */
export class SharedWindows implements LimitWindows {
  constructor(
    private readonly shared: LimitWindows,
    private readonly local: LimitWindows,
  ) {}

  async add(key: string, points: number, limit: number): Promise<Addition | undefined> {
    return (await this.shared.add(key, points, limit)) ?? (await this.local.add(key, points, limit))
  }

  async debit(key: string, points: number, limit: number): Promise<WindowState | undefined> {
    return (await this.shared.debit(key, points, limit)) ?? (await this.local.debit(key, points, limit))
  }

  async peek(key: string, limit: number): Promise<WindowState | undefined> {
    return (await this.shared.peek(key, limit)) ?? (await this.local.peek(key, limit))
  }
}
