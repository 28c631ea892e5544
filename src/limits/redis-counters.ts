import type { Redis } from 'ioredis'
import { REDIS_PREFIX, type RedisLink } from './redis-connection.js'

/** Leases that one command renews: Redis does nothing else meanwhile. */
const RENEWED_AT_ONCE = 500

/**
 * A lease is a member of a sorted set, with the time of its end as its score, by the clock of Redis. Leases that have
 * ended count no more, so that those of a process that was killed are free again without anybody's doing.
 */
const NOW_MS = `
local time = redis.call('time')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
`

/**
 * Where the clock was set back, or a server with a slower one took over, leases would last longer by the whole step,
 * and nobody ends those of a dead process. They are shortened, not removed: most are of calls under way, which nobody
 * would count until their next renewal.
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

/** Leases that all replicas share. Whatever is asked resolves with undefined when Redis is away. */
export class RedisLeases {
  private readonly commands: LeaseCommands & Pick<Redis, 'zrem'>

  constructor(
    private readonly link: RedisLink,
    private readonly leaseMs: number,
  ) {
    const { client } = link
    client.defineCommand('takeLease', { numberOfKeys: 1, lua: TAKE })
    client.defineCommand('renewLeases', { lua: RENEW })
    client.defineCommand('countLeases', { numberOfKeys: 1, lua: COUNT })
    this.commands = client as Redis & LeaseCommands
  }

  /** `isWanted` is asked when the answer comes later than it was waited for: a lease that nobody holds is given back. */
  async take(key: string, id: string, limit: number, isWanted: () => boolean): Promise<boolean | undefined> {
    const taken = await this.link.ask(
      () => this.commands.takeLease(keyOf(key), id, limit, this.leaseMs),
      (lateAnswer) => {
        if (lateAnswer === 1 && !isWanted()) this.release(key, id)
      },
    )
    return taken === undefined ? undefined : taken === 1
  }

  /**
   * All in one go: commands are sent in the order in which they are given, so that a lease which is released meanwhile
   * is not brought back.
   */
  async renew(leases: Iterable<readonly [key: string, ids: Iterable<string>]>): Promise<void> {
    const keys: string[] = []
    const ids: string[] = []
    for (const [key, held] of leases) {
      for (const id of held) {
        keys.push(keyOf(key))
        ids.push(id)
      }
    }
    if (ids.length > 0) await this.link.ask(() => Promise.all(this.renewals(keys, ids)))
  }

  release(key: string, id: string): void {
    this.link.tell(() => this.commands.zrem(keyOf(key), id))
  }

  count(key: string): Promise<number | undefined> {
    return this.link.ask(() => this.commands.countLeases(keyOf(key), this.leaseMs))
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
