import { setImmediate as nextTurn } from 'node:timers/promises'
import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { UsageRecovery } from './disk-buffer-recovery.js'
import { SpillFolder } from './disk-buffer.js'
import { LostUsage } from './lost-usage.js'
import { OverflowFiles } from './overflow-files.js'

/** Kept in memory until they are in a file: what comes in a second or two, also on a disk that is slow. */
const MAXIMUM_WAITING_ROWS = 10_000

/** Written before the disk is waited for. */
const ROWS_OF_A_BATCH = 5000

/** Told in one go: more would hold up the calls that are under way. */
const LINES_AT_ONCE = 50

/**
 * Records for which the queue has no room while the store is away: they wait in files until it has taken the queue. Those
 * that no file takes are told to the log, one by one.
 */
@Injectable()
export class UsageOverflow {
  private readonly files: OverflowFiles
  private waiting: UsageRecord[] = []
  private writing: readonly UsageRecord[] = []
  private work: Promise<void> = Promise.resolve()
  private timer: NodeJS.Timeout | undefined
  private isWriting = false
  private hasFiles = false
  private hasToldOfFiles = false
  private hasToldOfFailure = false

  constructor(
    private readonly folder: SpillFolder,
    private readonly recovery: UsageRecovery,
    private readonly store: ConfigStore,
    private readonly lost: LostUsage,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.files = new OverflowFiles(folder)
  }

  /** Those that are in no file yet. */
  get rows(): number {
    return this.waiting.length + this.writing.length
  }

  /** Never waits, never throws. */
  add(records: readonly UsageRecord[]): void {
    for (const record of records) this.waiting.push(record)
    const excess = this.waiting.length - MAXIMUM_WAITING_ROWS
    if (excess > 0) this.lost.tell('overflow', this.waiting.splice(0, excess))
    const { batchRows, batchMs } = this.store.current.usage
    if (this.waiting.length >= batchRows) this.begin()
    else this.timer ??= setTimeout(this.begin, batchMs).unref()
  }

  /** There is room again: what is not being written comes back. */
  reclaim(): readonly UsageRecord[] {
    return this.waiting.splice(0)
  }

  /** The store has taken the queue: what is in files follows. */
  restore(): void {
    if (!this.hasFiles) return
    this.hasFiles = this.hasToldOfFiles = this.hasToldOfFailure = false
    this.work = this.work.then(() => {
      this.recovery.restore(this.files.release())
    })
  }

  /** Resolves when nothing is being written; never rejects. */
  whenIdle(): Promise<void> {
    return this.work
  }

  /** Resolves when nothing that waits in files is being stored; never rejects. */
  async whenRestored(): Promise<void> {
    await this.work
    await this.recovery.whenIdle()
  }

  /** For the very end: all that may be in no file, to whoever keeps it now. */
  takeRest(): readonly UsageRecord[] {
    const rest = [...this.writing, ...this.waiting]
    this.writing = []
    this.waiting = []
    return rest
  }

  private readonly begin = (): void => {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.isWriting || this.waiting.length === 0) return
    this.isWriting = this.hasFiles = true
    this.work = this.work.then(() => this.write())
  }

  /** Never rejects. */
  private async write(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, ROWS_OF_A_BATCH)
      this.writing = batch
      const written = await this.written(batch)
      // Otherwise all of it is kept already.
      if (this.writing === batch) await this.giveUpSlowly(batch.slice(written))
      this.writing = []
    }
    this.isWriting = false
  }

  private async written(batch: readonly UsageRecord[]): Promise<number> {
    const { path } = this.folder
    try {
      const written = await this.files.append(batch)
      if (written > 0 && !this.hasToldOfFiles)
        this.logger.warn({ folder: path }, 'usage waits in files: the queue is full')
      if (written > 0) this.hasToldOfFiles = true
      if (written === batch.length) this.hasToldOfFailure = false
      else this.tellOfFailure({ folder: path })
      return written
    } catch (error) {
      this.tellOfFailure({ folder: path, err: error })
      return 0
    }
  }

  private tellOfFailure(fields: object): void {
    if (!this.hasToldOfFailure)
      this.logger.error(fields, 'usage that does not fit into the queue finds no room in a file')
    this.hasToldOfFailure = true
  }

  /** Whoever takes the rest meanwhile takes what nobody was told of yet. */
  private async giveUpSlowly(records: readonly UsageRecord[]): Promise<void> {
    this.writing = records
    while (this.writing.length > 0) {
      this.lost.tell('overflow', this.writing.slice(0, LINES_AT_ONCE))
      this.writing = this.writing.slice(LINES_AT_ONCE)
      await nextTurn()
    }
  }
}
