import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common'
import { StoredKeys } from '../common/auth/stored-keys.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { ConfigStore } from '../config/config-store.js'
import { KeyRepository } from './key.repository.js'

/** Longer than a statement may take: what was under way at one reading is seen by the next. */
const OVERLAP_MS = 10_000

/** Finds what no change tells of: rows that somebody deleted by hand, and a clock that was put back. */
const FULL_EVERY_MS = 60_000

/**
 * Reads again and again what changed among the keys of the store, so that a key revoked by one replica is dead on all of
 * them within 5 s. While the store is away, the keys that are known go on.
 */
@Injectable()
export class KeyRefresher implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private isRunning = false
  private isStopping = false
  private isFailing = false
  private timer: NodeJS.Timeout | undefined
  private reading: Promise<void> = Promise.resolve()
  /** By the database's clock. */
  private asOfMs: number | undefined
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
      this.startIfAsked()
    })
    this.startIfAsked()
    await this.reading
  }

  onModuleDestroy(): void {
    this.isStopping = true
    clearTimeout(this.timer)
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.reading
  }

  /** Who neither issues keys nor shares a store has none there: nothing is opened for them. */
  private startIfAsked(): void {
    const { auth, database } = this.config.current
    if (this.isRunning || this.isStopping || (auth.adminKey === undefined && database.url === undefined)) return
    this.isRunning = true
    this.stored.await()
    this.reading = this.readOn()
  }

  /** Never rejects. */
  private async readOn(): Promise<void> {
    try {
      await this.readOnce()
      if (this.isFailing) this.logger.info('the keys of the store are read again')
      this.isFailing = false
    } catch (error) {
      if (!this.isFailing) this.logger.warn({ err: error }, 'the keys of the store cannot be read; known ones go on')
      this.isFailing = true
      this.stored.learn([])
    }
    if (this.isStopping) return
    this.timer = setTimeout(() => {
      this.reading = this.readOn()
    }, this.config.current.auth.keyRefreshMs)
    this.timer.unref()
  }

  private async readOnce(): Promise<void> {
    const startedAtMs = performance.now()
    const isFull = this.asOfMs === undefined || startedAtMs - this.fullAtMs >= FULL_EVERY_MS
    if (isFull) {
      const { keys, asOfMs } = await this.repository.read()
      this.stored.learnAll(keys, asOfMs - OVERLAP_MS)
      this.fullAtMs = startedAtMs
      this.asOfMs = asOfMs
      return
    }
    const { keys, asOfMs } = await this.repository.read((this.asOfMs ?? 0) - OVERLAP_MS)
    this.stored.learn(keys)
    this.asOfMs = asOfMs
  }
}
