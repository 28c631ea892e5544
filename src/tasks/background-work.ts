import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import { clientDisconnected, type RequestContext } from '../core/request-context.js'

/** Wall clock; also the injection token, so that tests can move the time. */
export abstract class Clock {
  /** Unix milliseconds. */
  abstract nowMs(): number
}

@Injectable()
export class SystemClock extends Clock {
  nowMs(): number {
    return Date.now()
  }
}

/** Clocks of replicas may differ by so much. */
export const CLOCK_TOLERANCE_MS = 60_000

/** Times planned before a clock was set back are looked for this often: it may have been so before the start, or elsewhere. */
const WATCH_INTERVAL_MS = 60_000
/** Smaller steps back only delay work by themselves. */
const SMALLEST_STEP_MS = 5_000

/** Compares the wall clock with one that is never set. */
export class ClockWatch {
  private leadMs: number
  private lookedAtMs = -Infinity

  constructor(private readonly clock: Clock) {
    this.leadMs = clock.nowMs() - performance.now()
  }

  /** undefined when there is no reason to look after planned times; otherwise whether the clock was set back meanwhile. */
  look(): { readonly isSetBack: boolean } | undefined {
    const steadyMs = performance.now()
    const leadMs = this.clock.nowMs() - steadyMs
    const isSetBack = leadMs < this.leadMs - SMALLEST_STEP_MS
    this.leadMs = leadMs
    if (!isSetBack && steadyMs - this.lookedAtMs < WATCH_INTERVAL_MS) return undefined
    this.lookedAtMs = steadyMs
    return { isSetBack }
  }
}

/** Sleep of background workers that ends early when work is due sooner than expected. */
@Injectable()
export class WakeTimer {
  /** The earliest scheduled time that has not passed. */
  private scheduledAtMs = Infinity
  private isOff = false
  private isWoken = false
  private rearm: () => void = () => undefined

  constructor(private readonly clock: Clock) {}

  /** Schedules a wake-up (Unix milliseconds). Without a sleep under way it applies to the next one. */
  scheduleAt(atMs: number): void {
    this.scheduledAtMs = Math.min(this.scheduledAtMs, atMs)
    this.rearm()
  }

  /** Ends the sleep under way, or the next one, at once, apart from its pace. */
  wake(): void {
    this.isWoken = true
    this.rearm()
  }

  /** Ends the sleep under way and every later one at once. */
  switchOff(): void {
    this.isOff = true
    this.rearm()
  }

  /**
   * Sleeps at most `longestMs`, less when a wake-up is scheduled earlier, but never less than `shortestMs`; after
   * `wake`, never less than `paceMs`.
   */
  async sleep(longestMs: number, shortestMs: number, paceMs = 0): Promise<void> {
    const startedAtMs = performance.now()
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.rearm = () => {
        clearTimeout(timer)
        const sleptMs = performance.now() - startedAtMs
        const remainingMs = Math.min(longestMs - sleptMs, this.scheduledAtMs - this.clock.nowMs())
        const leastMs = this.isWoken ? paceMs : Math.max(shortestMs, paceMs)
        const desiredMs = this.isWoken ? 0 : remainingMs
        timer = setTimeout(resolve, this.isOff ? 0 : Math.max(desiredMs, leastMs - sleptMs, 0))
      }
      this.rearm()
    })
    this.rearm = () => undefined
    this.isWoken = false
    if (this.scheduledAtMs <= this.clock.nowMs()) this.scheduledAtMs = Infinity
  }
}

/** The timer of the poller; creates and upstream callbacks schedule early polls on it. */
@Injectable()
export class PollWakeTimer extends WakeTimer {}

interface Queue<Item> {
  running: number
  readonly waiting: Item[]
}

interface KeyedQueueOptions<Item> {
  readonly keyOf: (item: Item) => string
  readonly concurrency: () => number
  /** Whether a queue in this state should get no further items. */
  readonly isBusy: (running: number, waiting: number) => boolean
  /** Must not reject. */
  readonly run: (item: Item) => Promise<void>
  /** Called after each item. `hasMadeRoom` = its queue was busy before and is not any more. */
  readonly onEnd: (hasMadeRoom: boolean) => void
}

/** Runs items, a limited number per key at once; waiting items of one key do not delay other keys. */
export class KeyedQueue<Item> {
  private readonly queues = new Map<string, Queue<Item>>()
  private readonly idleListeners: (() => void)[] = []
  private held = 0

  constructor(private readonly options: KeyedQueueOptions<Item>) {}

  /** Items running and waiting. */
  get size(): number {
    return this.held
  }

  add(item: Item): void {
    const key = this.options.keyOf(item)
    const queue = this.queues.get(key) ?? { running: 0, waiting: [] }
    this.queues.set(key, queue)
    queue.waiting.push(item)
    this.held++
    this.fill(key, queue)
  }

  busy(): string[] {
    return [...this.queues].filter(([, queue]) => this.isBusy(queue)).map(([key]) => key)
  }

  /** Removes and returns the waiting items; running ones continue. */
  takeWaiting(): Item[] {
    const taken = [...this.queues.values()].flatMap(({ waiting }) => waiting.splice(0))
    this.held -= taken.length
    return taken
  }

  /** Resolves once nothing is running or waiting. */
  async idle(): Promise<void> {
    if (this.queues.size === 0) return
    await new Promise<void>((resolve) => {
      this.idleListeners.push(resolve)
    })
  }

  private fill(key: string, queue: Queue<Item>): void {
    while (queue.running < this.options.concurrency()) {
      const item = queue.waiting.shift()
      if (item === undefined) break
      queue.running++
      void this.options.run(item).then(() => {
        this.onItemEnd(key, queue)
      })
    }
  }

  private onItemEnd(key: string, queue: Queue<Item>): void {
    const wasBusy = this.isBusy(queue)
    queue.running--
    this.held--
    this.fill(key, queue)
    if (queue.running === 0) this.queues.delete(key)
    this.options.onEnd(wasBusy && !this.isBusy(queue))
    if (this.queues.size === 0) for (const listener of this.idleListeners.splice(0)) listener()
  }

  private isBusy({ running, waiting }: Queue<Item>): boolean {
    return this.options.isBusy(running, waiting.length)
  }
}

/**
 * The result of work that should end by its timeout and with its caller; rejects then in any case, so that work which
 * hangs is not waited for.
 */
export async function withTimeout<Result>(
  work: Promise<Result>,
  call: RequestContext,
  limitMs: number,
): Promise<Result> {
  let removeListener: () => void = () => undefined
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', 'The upstream did not answer in time.'))
    }, limitMs)
    removeListener = call.disconnect.onAbort(() => {
      reject(clientDisconnected())
    })
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
    removeListener()
  }
}
