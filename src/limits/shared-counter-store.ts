import type { RedisSection } from '../config/settings.js'
import type { Logger } from '../observability/logger.js'
import { MemoryWindows } from './counters.js'
import { type CounterStore, LimitCounters } from './key-limiter.js'
import { LARGEST_GROWTH, RedisConnection } from './redis-connection.js'
import { RedisLeases, RedisWindows, SharedLeases, SharedWindows } from './redis-counters.js'

/** How long a lease of a killed process still counts. */
const LEASE_MS = 15_000
const HEARTBEAT_MS = 5_000

/** In Redis, with this process as the fallback. */
export function sharedStore(
  { url, timeoutMs, localShare }: RedisSection & { readonly url: string },
  processes: number,
  logger: Pick<Logger, 'info' | 'warn'>,
): CounterStore {
  const connection = new RedisConnection(url, timeoutMs, logger)
  const share = localShare / processes
  // So long before a window's end nothing is given back: a command that timed out may still be executed.
  const marginMs = LARGEST_GROWTH * timeoutMs
  const windows = new SharedWindows(new RedisWindows(connection, marginMs), new MemoryWindows(share))
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
