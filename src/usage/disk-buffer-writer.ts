import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { hasCode } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { DiskBufferRecovery } from './record-delivery.js'
import { bufferedRow, DiskBuffer } from './disk-buffer.js'
import { DroppedUsage } from './usage-metrics.js'

/** About thirty thousand rows. A file is removed once all of it is stored, and one that is stored half-way is stored again. */
const MAXIMUM_FILE_BYTES = 16 * 1024 * 1024

/** Rows serialized at once: more would delay requests under way. */
const ROWS_AT_ONCE = 50

/** Files that a serving process writes rows into; any process on the same folder may take them. */
export class DiskBufferFiles {
  private file: string | undefined
  private complete: string[] = []

  constructor(
    private readonly folder: DiskBuffer,
    private readonly largestBytes = MAXIMUM_FILE_BYTES,
  ) {}

  /**
   * Resolves with how many of the records, from the first, are on the disk: those that fit. Rejects with the file
   * system's error; then none of them counts as written. One call at a time.
   */
  async append(records: readonly UsageRecord[]): Promise<number> {
    const roomBytes = await this.folder.roomBytes()
    if (roomBytes <= 0) return 0
    for (;;) {
      const written = await this.written(records, roomBytes)
      if (written !== undefined) return written
      this.file = undefined
    }
  }

  /** Closes the files and returns them; not while an append is under way. */
  release(): readonly string[] {
    this.endFile()
    const files = this.complete
    this.complete = []
    return files
  }

  /** Undefined when another process has taken the file meanwhile, and may have read it before the rows were in it. */
  private async written(records: readonly UsageRecord[], roomBytes: number): Promise<number | undefined> {
    const { file, handle } = await this.opened()
    try {
      const { ino, size } = await handle.stat()
      const rows = await this.durably(handle, size, () => writeRows(handle, records, roomBytes))
      const found = await statIfThere(file)
      if (found?.ino !== ino) return undefined
      if (found.size >= this.largestBytes) this.endFile()
      return rows
    } finally {
      await handle.close()
    }
  }

  /** On the disk, its name included, when it resolves. A failed write is truncated. */
  private async durably(handle: FileHandle, sizeBytes: number, write: () => Promise<number>): Promise<number> {
    try {
      const rows = await write()
      await handle.sync()
      if (sizeBytes === 0) await this.folder.sync()
      return rows
    } catch (error) {
      await handle.truncate(sizeBytes).catch(() => {
        this.endFile()
      })
      throw error
    }
  }

  /** Never creates a taken file again: it would be taken under the same name. */
  private async opened(): Promise<{ readonly file: string; readonly handle: FileHandle }> {
    const { file } = this
    if (file !== undefined) {
      try {
        return { file, handle: await open(file, constants.O_WRONLY | constants.O_APPEND) }
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error
      }
    }
    const made = this.folder.newFile()
    const handle = await open(made, 'ax', 0o600)
    this.file = made
    return { file: made, handle }
  }

  private endFile(): void {
    if (this.file !== undefined) this.complete.push(this.file)
    this.file = undefined
  }
}

async function statIfThere(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function writeRows(handle: FileHandle, records: readonly UsageRecord[], roomBytes: number): Promise<number> {
  let leftBytes = roomBytes
  for (let at = 0; at < records.length; at += ROWS_AT_ONCE) {
    let text = ''
    for (const [index, record] of records.slice(at, at + ROWS_AT_ONCE).entries()) {
      const row = bufferedRow(record)
      leftBytes -= Buffer.byteLength(row)
      if (leftBytes < 0) {
        await handle.appendFile(text)
        return at + index
      }
      text += row
    }
    await handle.appendFile(text)
  }
  return records.length
}

/** Rows kept in memory until they are in a file: those of a second or two, also with a slow disk. */
const MAXIMUM_WAITING_ROWS = 10_000

/** Rows written before each sync. */
const ROWS_OF_A_BATCH = 5000

/** Lines logged at once: more would delay requests under way. */
const LINES_AT_ONCE = 50

/**
 * Buffers records that do not fit into the queue while the store is away: they are kept in files until the store has
 * taken the queue. Those that do not fit into files are logged one by one.
 */
@Injectable()
export class DiskBufferWriter {
  private readonly files: DiskBufferFiles
  private waiting: UsageRecord[] = []
  private writing: readonly UsageRecord[] = []
  private lastOperation: Promise<void> = Promise.resolve()
  private timer: NodeJS.Timeout | undefined
  private isWriting = false
  private hasFiles = false
  private hasLoggedFiles = false
  private hasLoggedFailure = false

  constructor(
    private readonly folder: DiskBuffer,
    private readonly recovery: DiskBufferRecovery,
    private readonly store: ConfigStore,
    private readonly dropped: DroppedUsage,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.files = new DiskBufferFiles(folder)
  }

  /** Rows that are in no file yet. */
  get rows(): number {
    return this.waiting.length + this.writing.length
  }

  /** Never waits, never throws. */
  add(records: readonly UsageRecord[]): void {
    for (const record of records) this.waiting.push(record)
    const excess = this.waiting.length - MAXIMUM_WAITING_ROWS
    if (excess > 0) this.dropped.log('overflow', this.waiting.splice(0, excess))
    const { batchRows, batchMs } = this.store.current.usage
    if (this.waiting.length >= batchRows) this.begin()
    else this.timer ??= setTimeout(this.begin, batchMs).unref()
  }

  /** Returns the rows that are not being written: the queue has room again. */
  reclaim(): readonly UsageRecord[] {
    return this.waiting.splice(0)
  }

  /** Restores the files: the store has taken the queue. */
  restore(): void {
    if (!this.hasFiles) return
    this.hasFiles = this.hasLoggedFiles = this.hasLoggedFailure = false
    this.lastOperation = this.lastOperation.then(() => {
      this.recovery.restore(this.files.release())
    })
  }

  /** Resolves when no write is under way; never rejects. */
  whenIdle(): Promise<void> {
    return this.lastOperation
  }

  /** Resolves when no file is being restored; never rejects. */
  async whenRestored(): Promise<void> {
    await this.lastOperation
    await this.recovery.whenIdle()
  }

  /** Returns all rows that may be in no file; for the end of the process. */
  takeUnwritten(): readonly UsageRecord[] {
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
    this.lastOperation = this.lastOperation.then(() => this.write())
  }

  /** Never rejects. */
  private async write(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, ROWS_OF_A_BATCH)
      this.writing = batch
      const written = await this.written(batch)
      // Otherwise `takeRest` has returned all of it.
      if (this.writing === batch) await this.backOff(batch.slice(written))
      this.writing = []
    }
    this.isWriting = false
  }

  private async written(batch: readonly UsageRecord[]): Promise<number> {
    const { path } = this.folder
    try {
      const written = await this.files.append(batch)
      if (written > 0 && !this.hasLoggedFiles)
        this.logger.warn({ folder: path }, 'usage waits in files: the queue is full')
      if (written > 0) this.hasLoggedFiles = true
      if (written === batch.length) this.hasLoggedFailure = false
      else this.logFailure({ folder: path })
      return written
    } catch (error) {
      this.logFailure({ folder: path, err: error })
      return 0
    }
  }

  private logFailure(fields: object): void {
    if (!this.hasLoggedFailure)
      this.logger.error(fields, 'usage that does not fit into the queue finds no room in a file')
    this.hasLoggedFailure = true
  }

  /** `takeRest` meanwhile returns the rows that are not logged yet. */
  private async backOff(records: readonly UsageRecord[]): Promise<void> {
    this.writing = records
    while (this.writing.length > 0) {
      this.dropped.log('overflow', this.writing.slice(0, LINES_AT_ONCE))
      this.writing = this.writing.slice(LINES_AT_ONCE)
      await nextTurn()
    }
  }
}
