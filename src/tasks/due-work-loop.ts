import type { Logger } from '../observability/logger.js'
import { type Clock, ClockWatch, WakeTimer } from './background-work.js'

/** Longest pause: what another replica has left behind is found by looking only. */
const IDLE_PAUSE_MS = 10_000
/** Pause when something is due but leased to another replica, or its queue is busy. */
const BUSY_PAUSE_MS = 1_000
/** First pause while the store fails, doubled up to the longest. */
const STORE_RETRY_MS = 1_000
const LONGEST_STORE_RETRY_MS = 30_000

/** Work that waits in the store until it is due. All methods may reject while the store cannot be reached. */
interface DueWork {
  /** Claims and begins what is due, as far as there is room; true if it claimed some, so that there may be more. */
  readonly claim: () => Promise<boolean>
  /** Unix milliseconds; undefined = nothing waits. */
  readonly nextDueAtMs: () => Promise<number | undefined>
  /** After the clock was set back, what was planned before would wait until it has caught up. */
  readonly bringForward: (isSetBack: boolean) => Promise<void>
  /** The one log line of an outage of the store. */
  readonly outage: string
}

/** Claims due work, round by round, from its start until it is stopped. */
export class DueWorkLoop {
  private readonly wakeTimer: WakeTimer
  private readonly clockWatch: ClockWatch
  private working: Promise<void> | undefined
  private stopping = false
  private failedRounds = 0

  constructor(
    private readonly work: DueWork,
    private readonly clock: Clock,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {
    this.wakeTimer = new WakeTimer(clock)
    this.clockWatch = new ClockWatch(clock)
  }

  get hasStarted(): boolean {
    return this.working !== undefined
  }

  get isStopping(): boolean {
    return this.stopping
  }

  start(): void {
    this.working ??= this.run()
  }

  /** Looks for due work now. */
  wake(): void {
    this.wakeTimer.wake()
  }

  /** Looks for due work then (Unix milliseconds). */
  scheduleAt(atMs: number): void {
    this.wakeTimer.scheduleAt(atMs)
  }

  /** Nothing more is claimed. */
  stop(): void {
    this.stopping = true
    this.wakeTimer.switchOff()
  }

  /** Resolves when the last round is over. */
  async stopped(): Promise<void> {
    await this.working
  }

  private async run(): Promise<void> {
    while (!this.stopping) await this.wakeTimer.sleep(await this.round(), 0)
  }

  /** Returns the pause until the next round. Never rejects. */
  private async round(): Promise<number> {
    try {
      const watched = this.clockWatch.look()
      if (watched !== undefined) await this.work.bringForward(watched.isSetBack)
      while (!this.stopping && (await this.work.claim()));
      const dueAtMs = this.stopping ? undefined : await this.work.nextDueAtMs()
      this.failedRounds = 0
      if (dueAtMs === undefined) return IDLE_PAUSE_MS
      const waitMs = dueAtMs - this.clock.nowMs()
      return waitMs <= 0 ? BUSY_PAUSE_MS : Math.min(waitMs, IDLE_PAUSE_MS)
    } catch (error) {
      if (this.failedRounds++ === 0) this.logger.warn({ err: error }, this.work.outage)
      return Math.min(STORE_RETRY_MS * 2 ** (this.failedRounds - 1), LONGEST_STORE_RETRY_MS)
    }
  }
}
