import { LocalLeases, MemoryWindows } from './counters.js'
import { LimitCounters } from './key-limiter.js'

/** Where limits are counted: in this process, or in Redis with this process as the fallback. */
export interface CounterStore {
  readonly counters: LimitCounters
  readonly isShared: boolean
  readonly isUnavailable: () => boolean
  /** Never rejects; resolves also when Redis cannot be reached. */
  readonly open: () => Promise<void>
  readonly close: () => Promise<void>
}

/** In this process alone. */
export const localStore = (share: number): CounterStore => ({
  counters: new LimitCounters(new MemoryWindows(share), new LocalLeases(share)),
  isShared: false,
  isUnavailable: () => false,
  open: () => Promise.resolve(),
  close: () => Promise.resolve(),
})
