import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible'
import { type Addition, type LimitWindows, WINDOW_SECONDS, type WindowHome, type WindowState } from './limit-windows.js'
import { REDIS_PREFIX, type RedisLink } from './redis-connection.js'

/** Different limits that are remembered; each is a small object, and every key may have its own. */
const MAXIMUM_LIMITERS = 1000

/** A limiter with this limit refuses nothing. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

/**
 * In place of the library's own script, which counts what does not fit as well: points that do not fit change nothing
 * and are answered with what the count would have been; points that are given back, or none (a look), never open a
 * window. The end of a window is an instant of the clock of Redis: where that was set back, or a server with a slower
 * one took over, a window would last longer by the whole step. None has more left than its length. (The negative of
 * zero is spelled `-0`, which is no number to Redis.)
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

/** Windows that all replicas share, by the clock of Redis. */
export class RedisWindows implements LimitWindows, WindowHome {
  private readonly limiters = new Map<number, RateLimiterRedis>()

  /** `marginMs`: so long before its end a window is taken for over; at least what a command may be under way. */
  constructor(
    private readonly link: RedisLink,
    private readonly marginMs: number,
  ) {}

  add(key: string, points: number, limit: number): Promise<Addition | undefined> {
    const added = async (): Promise<Addition> => {
      const state = stateOf(await this.limiter(limit).penalty(key, points), limit)
      const fits = state.used <= limit
      return { ...state, home: this, fits, ...(fits ? { counted: points } : { counted: 0, used: state.used - points }) }
    }
    // Whoever asked has been served by the local windows meanwhile.
    return this.link.ask(added, ({ counted, endsAtMs }) => {
      if (counted > 0) void this.giveBack(key, counted, limit, endsAtMs)
    })
  }

  debit(key: string, points: number, limit: number): Promise<WindowState | undefined> {
    return this.link.ask(async () => stateOf(await this.limiter(NO_LIMIT).penalty(key, points), limit))
  }

  giveBack(key: string, points: number, limit: number, endsAtMs: number): Promise<WindowState | undefined> {
    if (performance.now() + this.marginMs >= endsAtMs) return Promise.resolve(undefined)
    const reward = (): Promise<RateLimiterRes> => this.limiter(NO_LIMIT).reward(key, points)
    if (!this.link.isAway) return this.link.ask(async () => stateOf(await reward(), limit))
    this.link.tell(reward)
    return Promise.resolve(undefined)
  }

  peek(key: string, limit: number): Promise<WindowState | undefined> {
    return this.link.ask(async () => stateOf(await this.limiter(NO_LIMIT).penalty(key, 0), limit))
  }

  /** They share one script and hold no counts. */
  private limiter(limit: number): RateLimiterRedis {
    const known = this.limiters.get(limit)
    if (known !== undefined) return known
    if (this.limiters.size >= MAXIMUM_LIMITERS) this.limiters.clear()
    const made = new RateLimiterRedis({
      storeClient: this.link.client,
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
