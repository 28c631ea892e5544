import { totalmem } from 'node:os'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Sharer } from '../core/fair-share.js'
import { FairTurns } from './fair-turns.js'

interface MemoryWatermarks {
  /** Absent = what the machine or its container has, without what documents may use. */
  readonly memoryBytes?: number
  /** Of processes beside this one; absent = none read documents. */
  readonly documentsBytes?: number
  readonly memoryHighShare: number
  readonly memoryLowShare: number
}

/** What the process uses and may use, in bytes. */
export interface MemoryReading {
  readonly residentBytes: number
  readonly availableBytes: number
  readonly heapBytes: number
  /** Beyond it the engine ends the process. */
  readonly heapLimitBytes: number
}

/** A collection stops everything for a moment, so it is asked for no more often than this. */
const COLLECTION_INTERVAL_MS = 10_000

/**
 * Says when memory runs out: of the process as its machine or container sees it, or of its JavaScript heap. What is
 * used includes what is garbage already, so that is collected before a request is refused for it.
 */
export class MemoryLoad {
  #isHigh = false
  #share = 0
  #collectedAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly watermarks: () => MemoryWatermarks,
    private readonly read: () => MemoryReading,
    private readonly collect: () => void,
  ) {}

  /** From the high watermark on, until the low one is reached again. */
  get isHigh(): boolean {
    return this.#isHigh
  }

  /** What is used of what there is, 0 to 1: of the process or of the heap, whichever is fuller. */
  get share(): number {
    return this.#share
  }

  sample(nowMs: number): void {
    const { memoryHighShare, memoryLowShare } = this.watermarks()
    const limit = this.#isHigh ? memoryLowShare : memoryHighShare
    this.#share = this.#measure()
    if (this.#share > limit && nowMs - this.#collectedAtMs >= COLLECTION_INTERVAL_MS) {
      this.#collectedAtMs = nowMs
      this.collect()
      this.#share = this.#measure()
    }
    this.#isHigh = this.#share > limit
  }

  #measure(): number {
    const { residentBytes, availableBytes, heapBytes, heapLimitBytes } = this.read()
    const { memoryBytes, documentsBytes = 0 } = this.watermarks()
    const usableBytes = memoryBytes ?? memoryBesideDocuments(availableBytes, documentsBytes)
    return Math.max(residentBytes / usableBytes, heapBytes / heapLimitBytes)
  }
}

/** A gateway with the embedded store needs about half of it to serve at all. */
const LEAST_USABLE_BYTES = 1_073_741_824

/**
 * What a process may use where the processes that read documents have the same memory: the kernel would otherwise end
 * some process before a request is refused. On small machines no room is kept for documents, as none may be sent.
 */
export const memoryBesideDocuments = (availableBytes: number, documentsBytes: number): number =>
  Math.min(availableBytes, Math.max(availableBytes - documentsBytes, LEAST_USABLE_BYTES))

/** What this process uses, and may use now as one of so many. Costs a few microseconds. */
export function readProcessMemory(workers: number): MemoryReading {
  const { used_heap_size: heapBytes, heap_size_limit: heapLimitBytes } = getHeapStatistics()
  return {
    residentBytes: process.memoryUsage.rss(),
    availableBytes: availableBytes() / workers,
    heapBytes,
    heapLimitBytes,
  }
}

/** Outside of a container the limit is absent, 0 or larger than any machine. */
function availableBytes(): number {
  const machineBytes = totalmem()
  const containerBytes = process.constrainedMemory()
  return containerBytes > 0 ? Math.min(containerBytes, machineBytes) : machineBytes
}

let collector: (() => void) | undefined

/** Collects all garbage: buffers of ended requests count as used until then. Stops everything for a moment. */
export function collectGarbage(): void {
  if (collector === undefined) {
    // The engine hands it out to new contexts only, and only while this flag is set.
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
    setFlagsFromString('--no-expose-gc')
  }
  collector()
}

interface EventLoopWatermarks {
  readonly loopDelayHighMs: number
  readonly loopDelayLowMs: number
}

/** Requests that a turn admits whatever it has lasted: neither one slow piece of work nor a burst is an overload. */
const FREE_IN_CALM = 512
/** The same with several callers, of whom each waits for the turns that another one makes long. */
const FREE_WHEN_SHARED = 128
/** The same while requests are refused: a trickle, by which the process sees whether it can work again. */
const FREE_IN_SHEDDING = 1

/** Turns above the high watermark for so long, and so many in a row, are an overload, whatever it comes from. */
const SLOW_MS = 1_000
const SLOW_TURNS = 5

/** Of the high watermark, with several callers. */
const SHARED_PART = 0.5

/** New connections that wait for so long are an overload of several callers: turns are short, and the modest wait as well. */
const ACCEPT_WAIT_MS = 100

/** Refusing ends after a time in which hardly anything was refused. */
const WINDOW_MS = 1_000
const HARDLY_ANYTHING = 0.05

/** A process that leaves so much of its processor unused is not overloaded by requests, however late its turns are. */
const BUSY_SHARE = 0.7

const SHRINK = 0.8
const GROW = 1.1
const LEAST_BUDGET_MS = 2

/** What one refusal takes, roughly. */
const REFUSAL_MS = 0.02

/** How often a calm loop is looked at; while requests are refused, every turn is. */
const CALM_INTERVAL_MS = 20
const SHEDDING_INTERVAL_MS = 1

/**
 * Judges by the event loop whether a new request can still be served promptly. One turn of the loop takes every socket that is
 * ready, so under too many requests the turns become longer and longer, and everybody waits for whole turns. When they stay above
 * the high watermark, or a burst is too large for one turn, new requests have a budget of each turn: those that come while it is
 * used up are refused, but for callers that had less than their part (`FairTurns`). With several callers half the high watermark
 * counts: a caller alone waits for itself. The budget shrinks while turns last longer than the high watermark, for instance by
 * streams that were admitted before, and grows while they are below the low one. A turn is only as long as the process worked in
 * it: one that waited for a processor others had does not work faster by refusing. All times are on one clock, in milliseconds.
 */
export class EventLoopLoad {
  #turnStartedAtMs: number
  #admitted = 0
  #refused = 0
  #slowTurns = 0
  #slowMs = 0
  #windowStartedAtMs = 0
  #judgedInWindow = 0
  #refusedInWindow = 0
  #workedInWindowMs = 0
  #budgetMs: number
  #free = FREE_IN_CALM
  #isShedding = false
  #delayMs = 0
  readonly #turns = new FairTurns()

  constructor(
    private readonly watermarks: () => EventLoopWatermarks,
    nowMs: number,
  ) {
    this.#turnStartedAtMs = nowMs
    this.#budgetMs = watermarks().loopDelayHighMs
  }

  /** Requests are being refused, or were a moment ago. */
  get isShedding(): boolean {
    return this.#isShedding
  }

  /** What the last turn lasted beyond what was slept in it. */
  get delayMs(): number {
    return this.#delayMs
  }

  /** When to call `turned` again. */
  get intervalMs(): number {
    if (this.#isShedding) return SHEDDING_INTERVAL_MS
    return Math.min(CALM_INTERVAL_MS, this.watermarks().loopDelayHighMs / 5)
  }

  /** Whether this turn has room for one more request, of a caller that may go before others. */
  admits(nowMs: number, sharer: Sharer): boolean {
    const isUsedUp = this.#admitted >= this.#free && nowMs - this.#turnStartedAtMs > this.#budgetMs
    if (isUsedUp && !this.#turns.takesTurn(sharer)) {
      this.#refused++
      return false
    }
    this.#turns.count(sharer)
    this.#admitted++
    return true
  }

  /** Notes what has passed for a request that was admitted, when it is over. */
  countBytes(sharer: Sharer, bytes: number): void {
    this.#turns.countBytes(sharer, bytes)
  }

  /**
   * Called by a timer that was set to `sleptMs`: a new turn begins. In the last one the process worked for `workedMs`; new connections
   * have waited for `acceptWaitMs`.
   */
  turned(nowMs: number, sleptMs: number, workedMs: number, acceptWaitMs = 0): void {
    const { loopDelayHighMs, loopDelayLowMs } = this.watermarks()
    this.#delayMs = Math.max(0, nowMs - this.#turnStartedAtMs - sleptMs)
    this.#workedInWindowMs += workedMs
    this.#turns.tick(nowMs)
    const { isShared } = this.#turns
    const slowMs = isShared ? loopDelayHighMs * SHARED_PART : loopDelayHighMs
    this.#noteTurn(Math.min(this.#delayMs, workedMs) > slowMs)
    const isSlow = this.#slowTurns >= SLOW_TURNS && this.#slowMs >= SLOW_MS
    const isWaitedFor = isShared && acceptWaitMs >= ACCEPT_WAIT_MS
    if (this.#refused > 0 || isSlow || isWaitedFor) this.#shed(nowMs, loopDelayLowMs)
    if (this.#isShedding) this.#adapt(nowMs, loopDelayLowMs, isWaitedFor)
    if (!this.#isShedding) this.#budgetMs = slowMs
    this.#free = this.#isShedding ? FREE_IN_SHEDDING : isShared ? FREE_WHEN_SHARED : FREE_IN_CALM
    this.#turnStartedAtMs = nowMs
    this.#admitted = 0
    this.#refused = 0
  }

  #noteTurn(isSlow: boolean): void {
    this.#slowTurns = isSlow ? this.#slowTurns + 1 : 0
    this.#slowMs = isSlow ? this.#slowMs + this.#delayMs : 0
  }

  #shed(nowMs: number, budgetMs: number): void {
    if (this.#isShedding) return
    this.#isShedding = true
    this.#budgetMs = budgetMs
    this.#beginWindow(nowMs)
  }

  #beginWindow(nowMs: number): void {
    this.#windowStartedAtMs = nowMs
    this.#judgedInWindow = 0
    this.#refusedInWindow = 0
    this.#workedInWindowMs = 0
  }

  /** Fewer admissions do not shorten what refusals take of a turn, so that part of it does not count. */
  #adapt(nowMs: number, lowMs: number, isWaitedFor: boolean): void {
    const workMs = this.#delayMs - this.#refused * REFUSAL_MS
    if (workMs > lowMs || isWaitedFor) this.#budgetMs = Math.max(LEAST_BUDGET_MS, this.#budgetMs * SHRINK)
    else if (workMs < lowMs / 2) this.#budgetMs = Math.min(lowMs, this.#budgetMs * GROW)
    this.#judgedInWindow += this.#admitted + this.#refused
    this.#refusedInWindow += this.#refused
    const windowMs = nowMs - this.#windowStartedAtMs
    if (windowMs < WINDOW_MS) return
    const isBusy = this.#workedInWindowMs > BUSY_SHARE * windowMs
    this.#isShedding = isBusy && this.#refusedInWindow > HARDLY_ANYTHING * this.#judgedInWindow
    this.#beginWindow(nowMs)
  }
}
