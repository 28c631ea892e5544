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
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { USAGE_KINDS } from '../core/endpoint.js'
import { hasCode } from '../core/errors.js'
import { PRICINGS, UNITS, USAGE_OUTCOMES, type UsageRecord } from '../core/usage-record.js'

const OPEN = '.rows'
/**
 * Rows that nobody has asked to store. Whoever opens a store reads such a file like any other. It is named differently
 * because a process that ends merges these files into one and drops the oldest rows: others must never lose any.
 */
const OPEN_PENDING = `.unasked${OPEN}`
/** Somebody reads it: whoever still writes into it begins another one. */
const TAKEN = '.taken'

/** Of all files together: about a million rows. A disk that is full ends more than accounting. */
const MAXIMUM_BYTES = 512 * 1024 * 1024

/** Written at once; as one text, all rows would need their memory twice. */
const ROWS_AT_ONCE = 1000

/**
 * Files of rows that a process could not store before it ended; whoever opens a store next on the same data directory
 * reads them. Each process writes a file of its own. Whatever a serving process may need often is asynchronous.
 */
export class DiskBuffer {
  private file: string | undefined

  constructor(
    readonly path: string,
    private readonly maximumBytes = MAXIMUM_BYTES,
    private readonly ending = OPEN,
  ) {}

  /** The same folder, for rows that nobody has asked to store. */
  pending(): DiskBuffer {
    return new DiskBuffer(this.path, this.maximumBytes, OPEN_PENDING)
  }

  /**
   * On the disk when it returns: how many of the rows, from the first, found room. Throws what the file system says; then
   * none of them counts as written. Each row ends in a line break.
   */
  append(rows: readonly string[]): number {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    const fitting = this.fitting(rows)
    if (fitting.length === 0) return 0
    while (!this.appended(fitting)) this.file = undefined
    return fitting.length
  }

  /** Takes the files there are, and those that somebody else had taken, who may be dead: rows are told apart by their ids. */
  take(): readonly string[] {
    return this.names()
      .filter((name) => name.endsWith(OPEN) || name.endsWith(TAKEN))
      .sort()
      .flatMap((name) => (name.endsWith(TAKEN) ? [join(this.path, name)] : this.taken(name)))
  }

  /** Takes those that end like its own, and nobody has taken: somebody with a store may be reading the others. */
  takeAlike(): readonly string[] {
    return this.names()
      .filter((name) => name.endsWith(this.ending))
      .sort()
      .flatMap((name) => this.taken(name))
  }

  /** Once what it holds is stored, or in another file. */
  remove(file: string): void {
    rmSync(file, { force: true })
    syncFolder(this.path)
  }

  /** The same for whoever serves calls meanwhile. */
  async discard(file: string): Promise<void> {
    await rm(file, { force: true })
    await this.sync()
  }

  /** The name of a file that there is not yet, of this process alone. */
  newFile(): string {
    return join(this.path, `${Date.now()}-${process.pid}-${randomBytes(4).toString('hex')}${this.ending}`)
  }

  /** What all files together may still take. Makes the folder. Rejects with what the file system says. */
  async roomBytes(): Promise<number> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    let room = this.maximumBytes
    for (const name of await readdir(this.path)) {
      // Somebody else may have stored and removed it meanwhile.
      const file = await stat(join(this.path, name)).catch(() => undefined)
      room -= file?.size ?? 0
    }
    return room
  }

  /** A file whose name is not on the disk yet is lost with the power, whatever is in it. */
  async sync(): Promise<void> {
    const handle = await open(this.path, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
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

  /** False when somebody has taken the file meanwhile, and may have read it before the rows were in it. */
  private appended(rows: readonly string[]): boolean {
    const { file, descriptor } = this.opened()
    try {
      const { ino, size } = fstatSync(descriptor)
      // What is there may end in the middle of a row: the disk was full.
      if (size > 0) writeAll(descriptor, '\n')
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
        writeAll(descriptor, rows.slice(at, at + ROWS_AT_ONCE).join(''))
      }
      fsyncSync(descriptor)
      syncFolder(this.path)
      return statSync(file, { throwIfNoEntry: false })?.ino === ino
    } finally {
      closeSync(descriptor)
    }
  }

  /**
   * The name of a file that somebody has taken is not used again: a second one, taken as well, would replace the first.
   */
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
    let room = this.maximumBytes
    for (const name of this.names()) room -= statSync(join(this.path, name), { throwIfNoEntry: false })?.size ?? 0
    for (const [count, row] of rows.entries()) {
      room -= Buffer.byteLength(row)
      if (room < 0) return rows.slice(0, count)
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

/** As `SpillFolder.sync`. */
function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** One row of a spill file: JSON, and the end of its line. */
export const bufferedRow = (record: UsageRecord): string => `${JSON.stringify(record)}\n`

/** How many of the records, from the first, are in a file now; and why no more are, where the file system says so. */
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

/** Far longer than any row; a file that was damaged may have no line breaks left. */
const LONGEST_LINE = 1_048_576

/** A file's lines, one by one; of one that is far too long, its end. Throws what the file system says. */
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

/** The record of a line; undefined for what a process that died, or a disk, has left of one. */
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
const oneOf =
  (words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)

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
