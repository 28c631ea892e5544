import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { StoredKeys } from './key-table.js'
import { KeyRepository } from './key.repository.js'

/** Longer than a statement may take: what was under way at one reading is seen by the next. */
const OVERLAP_MS = 10_000

/** The store's clock may lose so much between two readings; more is another clock, and less than the overlap goes unseen. */
const CLOCK_TOLERANCE_MS = 1_000

/** Finds what no change shows: rows deleted by hand. */
const FULL_EVERY_MS = 60_000

/** Where `auth.keyRefreshMs` is 4 s, the largest, one of the 5 s is left for further attempts. */
const RETRY_MS = 250
/** A reading that has no answer by then has another one beside it. */
const LATE_MS = 400
/** A store that does not answer has no more questions at a time. */
const AT_ONCE = 3
const SHORTEST_PAUSE_MS = 100

interface Moment {
  /** By the performance clock. */
  readonly startedAtMs: number
  /** By the database's. */
  readonly asOfMs: number
}

/**
 * Reads again and again what changed among the keys of the store, so that a key revoked by one replica is dead on all of
 * them within 5 s, although some readings fail or are slow. While the store is away, the keys that are known go on.
 */
@Injectable()
export class KeyRefresher implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private isRunning = false
  private isStopping = false
  private isFailing = false
  private timer: NodeJS.Timeout | undefined
  private readonly underWay = new Set<Promise<unknown>>()
  /** The newest reading that succeeded. */
  private newest: Moment | undefined
  /** On the performance clock. */
  private fullAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly config: ConfigStore,
    private readonly repository: KeyRepository,
    private readonly stored: StoredKeys,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /** The keys are known before the first caller comes, unless the store is away. */
  async onApplicationBootstrap(): Promise<void> {
    this.config.onChange(() => {
      this.startIfConfigured()
    })
    this.startIfConfigured()
    await Promise.all(this.underWay)
  }

  onModuleDestroy(): void {
    this.isStopping = true
    clearTimeout(this.timer)
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await Promise.all(this.underWay)
  }

  /** Who neither issues keys nor shares a store has none there: nothing is opened for them. */
  private startIfConfigured(): void {
    const { auth, database } = this.config.current
    if (this.isRunning || this.isStopping || (auth.adminKey === undefined && database.url === undefined)) return
    this.isRunning = true
    this.stored.await()
    this.begin()
  }

  /** The next reading comes when this one has ended, or beside it when it is late: whichever answers is heard. */
  private readonly begin = (): void => {
    if (this.underWay.size >= AT_ONCE) return
    const startedAtMs = performance.now()
    const reading = this.read(startedAtMs).then((isGood) => {
      this.underWay.delete(reading)
      this.beginIn(isGood ? this.pauseMs(performance.now() - startedAtMs) : RETRY_MS)
    })
    this.underWay.add(reading)
    this.beginIn(LATE_MS)
  }

  private beginIn(milliseconds: number): void {
    clearTimeout(this.timer)
    if (this.isStopping) return
    this.timer = setTimeout(this.begin, milliseconds).unref()
  }

  /** One that takes as long as the last one ends when it is due, counted from when that one began. */
  private pauseMs(tookMs: number): number {
    return Math.max(SHORTEST_PAUSE_MS, this.config.current.auth.keyRefreshMs - 2 * tookMs)
  }

  /** Whether it succeeded; never rejects. */
  private async read(startedAtMs: number): Promise<boolean> {
    try {
      await this.learn(startedAtMs)
      if (this.isFailing) this.logger.info('the keys of the store are read again')
      this.isFailing = false
      return true
    } catch (error) {
      // A later reading has succeeded meanwhile: nothing is wrong any more.
      if (this.newest !== undefined && this.newest.startedAtMs > startedAtMs) return true
      if (!this.isFailing) this.logger.warn({ err: error }, 'the keys of the store cannot be read; known ones go on')
      this.isFailing = true
      this.stored.learn([])
      return false
    }
  }

  private async learn(startedAtMs: number): Promise<void> {
    const previous = this.newest
    if (previous === undefined || startedAtMs - this.fullAtMs >= FULL_EVERY_MS) return this.learnAll(startedAtMs)
    const { keys, asOfMs } = await this.repository.read(previous.asOfMs - OVERLAP_MS)
    this.stored.learn(keys)
    const lostMs = startedAtMs - previous.startedAtMs - (asOfMs - previous.asOfMs)
    // Another server may have taken over: what changed there looks as if it had been read long ago.
    if (lostMs > CLOCK_TOLERANCE_MS) await this.learnAll(startedAtMs)
    else this.recordOutcome({ startedAtMs, asOfMs })
  }

  private async learnAll(startedAtMs: number): Promise<void> {
    const { keys, asOfMs } = await this.repository.read()
    // One that is late knows nothing of the keys that a later one has found deleted.
    if (startedAtMs < this.fullAtMs) this.stored.learn(keys)
    else {
      this.stored.learnAll(keys, asOfMs - OVERLAP_MS)
      this.fullAtMs = startedAtMs
    }
    this.recordOutcome({ startedAtMs, asOfMs })
  }

  private recordOutcome(moment: Moment): void {
    if (this.newest === undefined || moment.startedAtMs >= this.newest.startedAtMs) this.newest = moment
  }
}
