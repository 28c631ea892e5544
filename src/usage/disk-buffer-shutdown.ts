import { readFileSync, writeSync } from 'node:fs'
import { Inject, Injectable, Optional } from '@nestjs/common'
import type { UsageRecord } from '../core/usage-record.js'
import { isPipeFull, napForPipe, napsWithin } from '../observability/log-writer.js'
import { describeError, type Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { appended, recordOfRow, DiskBuffer } from './disk-buffer.js'
import { UsageMetrics } from './usage-metrics.js'

/** A full pipe is tried again so long in a row before its reader is taken for dead. */
const MAXIMUM_NAPS = napsWithin(2000)

/**
 * Lines past the log, its level and its buffer: written when this returns. One call for each, so that those of several
 * processes do not tear in one pipe. Ends with the first that finds no reader. Never throws.
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
      // A full pipe asks to try again; a closed one has no reader left.
      if (!isPipeFull(error) || naps++ === MAXIMUM_NAPS) return false
      napForPipe()
    }
  }
  return true
}

export interface KeptRows {
  /** In the file. */
  readonly rows: number
  /** Older ones, which are in no file any more. */
  readonly forgotten: number
  /** Those of the given that found no place. */
  readonly lost: readonly UsageRecord[]
  /** Why, where the file system said so. */
  readonly error?: unknown
}

/**
 * Puts the newest of these rows, and of those that processes before this one have left like this, into one file: however
 * often a gateway is restarted, no more than `most` of them wait for somebody to ask. The earlier files go once all of it
 * is on the disk; whoever has begun to read one reads on, as rows are told apart by their ids. Synchronous; never throws.
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

/** Of files that cannot be taken or read, nothing: they stay for whoever can. */
function earlierRows(folder: DiskBuffer): { readonly files: readonly string[]; readonly earlier: UsageRecord[] } {
  const files: string[] = []
  const earlier: UsageRecord[] = []
  for (const file of takenQuietly(folder)) {
    try {
      earlier.push(...rowsOf(file))
      files.push(file)
    } catch {
      // Gone: somebody with a store has stored it meanwhile.
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

/** Half a line is of a row that its process has told in another way: the disk was full. */
const rowsOf = (file: string): UsageRecord[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => recordOfRow(line) ?? [])

/** The oldest first, each once. */
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

/** What is left behind is there twice, and stored once. */
function removeQuietly(folder: DiskBuffer, file: string): void {
  try {
    folder.remove(file)
  } catch {
    // The disk fails, or the folder is not ours any more: nothing depends on it.
  }
}

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
export class ShutdownBuffer {
  constructor(
    private readonly folder: DiskBuffer,
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
    if (written < records.length) this.log(records.slice(written), error)
  }

  /**
   * For records that nobody has asked to store so far: with those that earlier starts have left like this, the newest
   * `most` go into a file. Returns how many older ones are forgotten. What no file takes is forgotten as well, which
   * one line says: who has not asked for a store is neither shown single records nor woken by a metric.
   */
  keepPending(records: readonly UsageRecord[], most: number): number {
    if (records.length === 0) return 0
    const { rows, forgotten, lost, error } = keepNewest(this.folder.pending(), records, most)
    if (rows > 0) this.logger.info({ rows, folder: this.folder.path }, 'usage waits in a file for the next start')
    if (lost.length > 0) {
      this.logger.warn(
        { rows: lost.length, folder: this.folder.path, err: error ?? NO_ROOM },
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
