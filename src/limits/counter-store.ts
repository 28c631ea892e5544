import type { RedisSection } from '../config/settings.js'
import type { Logger } from '../observability/logger.js'
import { LocalLeases, MemoryWindows } from './counters.js'
import { LimitCounters } from './limit-account.js'
import { RedisConnection } from './redis-connection.js'
import { RedisLeases, RedisWindows, SharedLeases, SharedWindows } from './redis-counters.js'

/** How long a lease of a process that was killed still counts. */
const LEASE_MS = 15_000
const HEARTBEAT_MS = 5_000

/** A command given up after the deadline may still be carried out; nothing is given back so close to a window's end. */
const MARGIN_DEADLINES = 2

/** Where limits are counted: in this process, or in Redis with this process as the fallback. */
export interface CounterStore {
  readonly counters: LimitCounters
  readonly isShared: boolean
  readonly isAway: () => boolean
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
  const link = new RedisConnection(url, timeoutMs, logger)
  const share = localShare / processes
  const windows = new SharedWindows(new RedisWindows(link, MARGIN_DEADLINES * timeoutMs), new MemoryWindows(share))
  const leases = new SharedLeases(new RedisLeases(link, LEASE_MS), share)
  link.onBack(() => void leases.renew())
  const heartbeat = setInterval(() => void leases.renew(), HEARTBEAT_MS).unref()
  return {
    counters: new LimitCounters(windows, leases),
    isShared: true,
    isAway: () => link.isAway,
    open: () => link.open(),
    close: async () => {
      clearInterval(heartbeat)
      await link.close()
    },
  }
}

const localStore = (share: number): CounterStore => ({
  counters: new LimitCounters(new MemoryWindows(share), new LocalLeases(share)),
  isShared: false,
  isAway: () => false,
  open: () => Promise.resolve(),
  close: () => Promise.resolve(),
})
