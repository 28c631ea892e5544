import type { Redis } from 'ioredis'
import { REDIS_PREFIX, type RedisLink } from './redis-link.js'

/** Ids that one command renews; more take several commands. */
const RENEWED_AT_ONCE = 500

/**
 * A lease is a member of a sorted set, with the time of its end as its score, by the clock of Redis. Leases that have
 * ended count no more, so that those of a process that was killed are free again without anybody's doing.
 */
const NOW_MS = `
local time = redis.call('time')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
`

/** Arguments: id, limit, milliseconds. */
const TAKE = `${NOW_MS}
redis.call('zremrangebyscore', KEYS[1], '-inf', nowMs)
if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('zadd', KEYS[1], nowMs + ARGV[3], ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[3])
return 1
`

/** Arguments: milliseconds, ids. */
const RENEW = `${NOW_MS}
for i = 2, #ARGV do redis.call('zadd', KEYS[1], nowMs + ARGV[1], ARGV[i]) end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1
`

const COUNT = `${NOW_MS}
return redis.call('zcount', KEYS[1], '(' .. nowMs, '+inf')
`

interface LeaseCommands {
  takeLease(key: string, id: string, limit: number, leaseMs: number): Promise<number>
  renewLeases(key: string, leaseMs: number, ...ids: string[]): Promise<number>
  countLeases(key: string): Promise<number>
}

/** Leases that all replicas share. Every method resolves with undefined when Redis is away. */
export class RedisLeases {
  private readonly commands: LeaseCommands & Pick<Redis, 'zrem'>

  constructor(
    private readonly link: RedisLink,
    private readonly leaseMs: number,
  ) {
    const { client } = link
    client.defineCommand('takeLease', { numberOfKeys: 1, lua: TAKE })
    client.defineCommand('renewLeases', { numberOfKeys: 1, lua: RENEW })
    client.defineCommand('countLeases', { numberOfKeys: 1, lua: COUNT })
    this.commands = client as Redis & LeaseCommands
  }

  async take(key: string, id: string, limit: number): Promise<boolean | undefined> {
    const taken = await this.link.ask(() => this.commands.takeLease(keyOf(key), id, limit, this.leaseMs))
    return taken === undefined ? undefined : taken === 1
  }

  async renew(key: string, ids: ReadonlySet<string>): Promise<void> {
    const all = [...ids]
    for (let start = 0; start < all.length; start += RENEWED_AT_ONCE) {
      const some = all.slice(start, start + RENEWED_AT_ONCE)
      await this.link.ask(() => this.commands.renewLeases(keyOf(key), this.leaseMs, ...some))
    }
  }

  async release(key: string, id: string): Promise<void> {
    await this.link.ask(() => this.commands.zrem(keyOf(key), id))
  }

  count(key: string): Promise<number | undefined> {
    return this.link.ask(() => this.commands.countLeases(keyOf(key)))
  }
}

const keyOf = (key: string): string => `${REDIS_PREFIX}:${key}`
