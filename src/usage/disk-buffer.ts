import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { USAGE_KINDS } from '../core/endpoint.js'
import { hasCode } from '../core/errors.js'
import { PRICINGS, UNITS, USAGE_OUTCOMES, type UsageRecord } from '../core/usage-record.js'
import { syncPath, syncPathNow } from '../storage/file-sync.js'

const OPEN = '.rows'
/**
 * File of pending rows: usage is not stored so far. A process that opens a store reads such a file like any other. The name
 * differs because a process that ends merges these files into one and drops the oldest rows: other files must never lose any.
 */
const OPEN_PENDING = `.unasked${OPEN}`
/** The file is being read: its writer creates another one. */
const TAKEN = '.taken'

/** Limit of all files together, about a million rows: a full disk affects more than accounting. */
const MAXIMUM_BYTES = 512 * 1024 * 1024

/** Rows written at once; as one text, all rows would need their memory twice. */
const ROWS_AT_ONCE = 1000

/**
 * Files of rows that a process could not store before it ended; the next process that opens a store on the same data
 * directory reads them. Each process writes a file of its own. Methods used while serving are asynchronous.
 */
export class DiskBuffer {
  private file: string | undefined

  constructor(
    readonly path: string,
    private readonly maximumBytes = MAXIMUM_BYTES,
    private readonly suffix = OPEN,
  ) {}

  /** The same folder, for pending rows. */
  pending(): DiskBuffer {
    return new DiskBuffer(this.path, this.maximumBytes, OPEN_PENDING)
  }

  /**
   * Writes rows; on the disk when it returns. Returns how many of them, from the first, fit. Throws the file system's
   * error; then none of them counts as written. Each row ends in a line break.
   */
  append(rows: readonly string[]): number {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    const fitting = this.fitting(rows)
    if (fitting.length === 0) return 0
    while (!this.appended(fitting)) this.file = undefined
    return fitting.length
  }

  /** Takes all files, also those taken by another process, which may be dead: rows are deduplicated by their ids. */
  take(): readonly string[] {
    return this.names()
      .filter((name) => name.endsWith(OPEN) || name.endsWith(TAKEN))
      .sort()
      .flatMap((name) => (name.endsWith(TAKEN) ? [join(this.path, name)] : this.taken(name)))
  }

  /** Takes the files of its own kind that are not taken: a process with a store may be reading the others. */
  takeAlike(): readonly string[] {
    return this.names()
      .filter((name) => name.endsWith(this.suffix))
      .sort()
      .flatMap((name) => this.taken(name))
  }

  /** Removes a file whose rows are stored, or in another file. */
  remove(file: string): void {
    rmSync(file, { force: true })
    syncPathNow(this.path)
  }

  /** The same, asynchronous. */
  async discard(file: string): Promise<void> {
    await rm(file, { force: true })
    await this.sync()
  }

  /** An unused file name of this process. */
  newFile(): string {
    return join(this.path, `${Date.now()}-${process.pid}-${randomBytes(4).toString('hex')}${this.suffix}`)
  }

  /** Bytes that all files together may still take. Creates the folder. Rejects with the file system's error. */
  async roomBytes(): Promise<number> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    let freeBytes = this.maximumBytes
    for (const name of await readdir(this.path)) {
      // Another process may have stored and removed it meanwhile.
      const file = await stat(join(this.path, name)).catch(() => undefined)
      freeBytes -= file?.size ?? 0
    }
    return freeBytes
  }

  /** Syncs the folder, for files that are new in it. */
  sync(): Promise<void> {
    return syncPath(this.path)
  }

  private taken(name: string): readonly string[] {
    const file = join(this.path, `${name.slice(0, -OPEN.length)}${TAKEN}`)
    try {
      renameSync(join(this.path, name), file)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
    return [file]
  }

  /** False when another process has taken the file meanwhile, and may have read it before the rows were in it. */
  private appended(rows: readonly string[]): boolean {
    const { file, descriptor } = this.opened()
    try {
      const { ino, size } = fstatSync(descriptor)
      // The file may end in the middle of a row: the disk was full.
      if (size > 0) writeAll(descriptor, '\n')
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
        writeAll(descriptor, rows.slice(at, at + ROWS_AT_ONCE).join(''))
      }
      fsyncSync(descriptor)
      syncPathNow(this.path)
      return statSync(file, { throwIfNoEntry: false })?.ino === ino
    } finally {
      closeSync(descriptor)
    }
  }

  /** The name of a taken file is not used again: a second one, taken as well, would replace the first. */
  private opened(): { readonly file: string; readonly descriptor: number } {
    const { file } = this
    if (file !== undefined) {
      try {
        return { file, descriptor: openSync(file, constants.O_WRONLY | constants.O_APPEND) }
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error
      }
    }
    const made = this.newFile()
    const descriptor = openSync(made, 'ax', 0o600)
    this.file = made
    return { file: made, descriptor }
  }

  private fitting(rows: readonly string[]): readonly string[] {
    let freeBytes = this.maximumBytes
    for (const name of this.names()) freeBytes -= statSync(join(this.path, name), { throwIfNoEntry: false })?.size ?? 0
    for (const [count, row] of rows.entries()) {
      freeBytes -= Buffer.byteLength(row)
      if (freeBytes < 0) return rows.slice(0, count)
    }
    return rows
  }

  private names(): readonly string[] {
    try {
      return readdirSync(this.path)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  }
}

function writeAll(descriptor: number, text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0;) rest = rest.subarray(writeSync(descriptor, rest))
}

/** One row of a buffer file: JSON and a line break. */
export const bufferedRow = (record: UsageRecord): string => `${JSON.stringify(record)}\n`

/** How many of the records, from the first, were written, and the file system's error, if there was one. */
export function appended(
  folder: DiskBuffer,
  records: readonly UsageRecord[],
): { readonly written: number; readonly error?: unknown } {
  try {
    return { written: folder.append(records.map(bufferedRow)) }
  } catch (error) {
    return { written: 0, error }
  }
}

/** Far longer than any row; a damaged file may have no line breaks left. */
const LONGEST_LINE = 1_048_576

/** A file's lines, one by one; of one that is far too long, its end. Throws the file system's error. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > LONGEST_LINE) rest = rest.slice(-1)
  }
  yield rest
}

/** The record of a line; undefined for a partial or damaged one. */
export function recordOfRow(line: string): UsageRecord | undefined {
  try {
    const fields = JSON.parse(line) as Readonly<Record<string, unknown>> | null
    return fields !== null && isRecord(fields) ? fields : undefined
  } catch {
    return undefined
  }
}

type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === 'string'
const count: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const nullOr =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const oneOf =
  (values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)

const units: Check = (value) =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).every(([name, quantity]) => (UNITS as readonly string[]).includes(name) && count(quantity))

const CHECKS: Readonly<Record<keyof UsageRecord, Check>> = {
  id: text,
  atMs: count,
  requestId: nullOr(text),
  keyId: text,
  ownerId: text,
  kind: oneOf(USAGE_KINDS),
  route: text,
  model: nullOr(text),
  channelId: nullOr(text),
  outcome: oneOf(USAGE_OUTCOMES),
  reason: optional(text),
  requests: optional(count),
  translation: optional(text),
  durationMs: nullOr(count),
  units,
  reported: nullOr(text),
  estimated: nullOr(text),
  pricing: oneOf(PRICINGS),
  cost: nullOr(text),
}

const isRecord = (
  fields: Readonly<Record<string, unknown>>,
): fields is Readonly<Record<string, unknown>> & UsageRecord =>
  Object.entries(CHECKS).every(([name, check]) => check(fields[name]))
