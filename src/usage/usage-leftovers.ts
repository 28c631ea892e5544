import { Inject, Injectable, Optional } from '@nestjs/common'
import type { UsageRecord } from '../core/usage-record.js'
import { describeError, type Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { keepNewest } from './disk-buffer-shutdown.js'
import { SpillFolder } from './disk-buffer.js'
import { appended } from './spilled-row.js'
import { writeUrgently } from './urgent-lines.js'
import { UsageMetrics } from './usage-metrics.js'

const STANDARD_ERROR = 2

/** pino's numbers. */
const ERROR_LEVEL = 50

/** Where the file system does not say why. */
const NO_ROOM = 'the files there are as large as they may be'

/**
 * Where records go that the store did not take before the process ended: into a file that the next start reads, or, where
 * there is no room for one, to standard error, whatever the level of the log. Synchronous; never throws.
 */
@Injectable()
export class UsageLeftovers {
  constructor(
    private readonly folder: SpillFolder,
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
    /** Given by tests only. */
    @Optional() private readonly descriptor: number = STANDARD_ERROR,
  ) {}

  keep(records: readonly UsageRecord[]): void {
    if (records.length === 0) return
    const { written, error } = appended(this.folder, records)
    if (written > 0) {
      this.logger.warn({ rows: written, folder: this.folder.path }, 'usage waits in a file for the next start')
    }
    if (written < records.length) this.tell(records.slice(written), error)
  }

  /**
   * For records that nobody has asked to store so far: with those that earlier starts have left like this, the newest
   * `most` go into a file. Returns how many older ones are forgotten. What no file takes is forgotten as well, which
   * one line says: who has not asked for a store is neither shown single records nor woken by a metric.
   */
  keepUnasked(records: readonly UsageRecord[], most: number): number {
    if (records.length === 0) return 0
    const { rows, forgotten, lost, error } = keepNewest(this.folder.unasked(), records, most)
    if (rows > 0) this.logger.info({ rows, folder: this.folder.path }, 'usage waits in a file for the next start')
    if (lost.length > 0) {
      this.logger.warn(
        { rows: lost.length, folder: this.folder.path, err: error ?? NO_ROOM },
        'usage that nobody has asked to store is forgotten: no file takes it',
      )
    }
    return forgotten
  }

  private tell(records: readonly UsageRecord[], error: unknown): void {
    this.metrics.countDropped('shutdown', records.length)
    const time = new Date().toISOString()
    const head = {
      level: ERROR_LEVEL,
      time,
      rows: records.length,
      folder: this.folder.path,
      ...(error === undefined ? {} : { err: describeError(error) }),
      msg: 'usage can neither be stored nor kept in a file: its records follow, one in a line',
    }
    const lines = records.map((record) => ({ level: ERROR_LEVEL, time, reason: 'shutdown', record, msg: 'usage' }))
    writeUrgently(this.descriptor, inJson([head, ...lines]))
  }
}

function* inJson(lines: readonly object[]): Iterable<string> {
  for (const line of lines) yield `${JSON.stringify(line)}\n`
}
