import { readFileSync, writeSync } from 'node:fs'
import { Inject, Injectable, Optional } from '@nestjs/common'
import type { UsageRecord } from '../core/usage-record.js'
import { isPipeFull, napForPipe, napsWithin } from '../observability/log-writer.js'
import { describeError, type Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { appended, recordOfRow, DiskBuffer } from './disk-buffer.js'
import { UsageMetrics } from './usage-metrics.js'

/** Retries of a full pipe, all together two seconds, before its reader is taken for dead. */
const MAXIMUM_NAPS = napsWithin(2000)

/**
 * Writes lines directly to a descriptor, past the logger, its level and its buffer; done when this returns. One call
 * for each line, so that lines of several processes do not tear in one pipe. Ends with the first line that finds no
 * reader. Never throws.
 */
function writeUrgently(descriptor: number, lines: Iterable<string>): void {
  for (const line of lines) if (!writeLine(descriptor, line)) return
}

function writeLine(descriptor: number, line: string): boolean {
  let rest = Buffer.from(line)
  for (let naps = 0; rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest))
      naps = 0
    } catch (error) {
      // A full pipe is retried; a closed one has no reader.
      if (!isPipeFull(error) || naps++ === MAXIMUM_NAPS) return false
      napForPipe()
    }
  }
  return true
}

export interface KeptRows {
  readonly rows: number
  /** Older rows that were dropped from all files. */
  readonly forgotten: number
  /** Given rows that did not fit. */
  readonly lost: readonly UsageRecord[]
  readonly error?: unknown
}

/**
 * Merges the newest of these rows and of earlier processes' pending rows into one file: however often a gateway
 * restarts, no more than `most` of them are kept. The earlier files are removed once all of it is on the disk; a
 * process that has begun to read one reads on, as rows are deduplicated by their ids. Synchronous; never throws.
 */
export function keepNewest(folder: DiskBuffer, records: readonly UsageRecord[], most: number): KeptRows {
  const { files, earlier } = earlierRows(folder)
  const { newest, forgotten } = newestOf([...earlier, ...records], most)
  const { written, error } = appended(folder, newest)
  if (written === newest.length) for (const file of files) removeQuietly(folder, file)
  const own = new Set(records)
  const lost = newest.slice(written).filter((record) => own.has(record))
  return { rows: written, forgotten, lost, ...(error === undefined ? {} : { error }) }
}

/** Empty for files that cannot be taken or read: they stay for another process. */
function earlierRows(folder: DiskBuffer): { readonly files: readonly string[]; readonly earlier: UsageRecord[] } {
  const files: string[] = []
  const earlier: UsageRecord[] = []
  for (const file of takenQuietly(folder)) {
    try {
      earlier.push(...rowsOf(file))
      files.push(file)
    } catch {
      // Gone: another process with a store has stored it meanwhile.
    }
  }
  return { files, earlier }
}

function takenQuietly(folder: DiskBuffer): readonly string[] {
  try {
    return folder.takeAlike()
  } catch {
    return []
  }
}

/** A partial line belongs to a row that its process has written elsewhere: the disk was full. */
const rowsOf = (file: string): UsageRecord[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => recordOfRow(line) ?? [])

/** Oldest first, without duplicates. */
function newestOf(
  records: readonly UsageRecord[],
  most: number,
): { readonly newest: readonly UsageRecord[]; readonly forgotten: number } {
  const sorted = [...new Map(records.map((record) => [record.id, record])).values()].sort(
    (one, other) => one.atMs - other.atMs,
  )
  const forgotten = Math.max(0, sorted.length - most)
  return { newest: sorted.slice(forgotten), forgotten }
}

/** A file that stays is a duplicate, and stored once. */
function removeQuietly(folder: DiskBuffer, file: string): void {
  try {
    folder.remove(file)
  } catch {
    // The disk fails, or the folder is not writable any more: nothing depends on the removal.
  }
}

const STANDARD_ERROR = 2

/** pino's numbers. */
const ERROR_LEVEL = 50

/** Reason without a file system error. */
const BUFFER_FULL = 'the files there are as large as they may be'

/**
 * Keeps records that the store did not take before the process ended: in a file that the next start reads, or, where it
 * does not fit, on standard error, whatever the level of the log. Synchronous; never throws.
 */
@Injectable()
export class ShutdownBuffer {
  constructor(
    private readonly folder: DiskBuffer,
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
    /** Set by tests only. */
    @Optional() private readonly descriptor: number = STANDARD_ERROR,
  ) {}

  keep(records: readonly UsageRecord[]): void {
    if (records.length === 0) return
    const { written, error } = appended(this.folder, records)
    if (written > 0) {
      this.logger.warn({ rows: written, folder: this.folder.path }, 'usage waits in a file for the next start')
    }
    if (written < records.length) this.log(records.slice(written), error)
  }

  /**
   * Keeps pending records: the newest `most` of them and of earlier starts are merged into one file. Returns how many
   * older ones were dropped. Those that no file takes are dropped too, which is logged in one line: without a store,
   * operators need neither single records nor an alert.
   */
  keepPending(records: readonly UsageRecord[], most: number): number {
    if (records.length === 0) return 0
    const { rows, forgotten, lost, error } = keepNewest(this.folder.pending(), records, most)
    if (rows > 0) this.logger.info({ rows, folder: this.folder.path }, 'usage waits in a file for the next start')
    if (lost.length > 0) {
      this.logger.warn(
        { rows: lost.length, folder: this.folder.path, err: error ?? BUFFER_FULL },
        'usage that nobody has asked to store is forgotten: no file takes it',
      )
    }
    return forgotten
  }

  private log(records: readonly UsageRecord[], error: unknown): void {
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
