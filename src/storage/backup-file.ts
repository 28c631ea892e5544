import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import { isNativeError } from 'node:util/types'
import { createGunzip, createGzip } from 'node:zlib'
import { hasCode } from '../core/errors.js'
import { isRecord } from '../core/validation-rules.js'
import { StoreUnusable } from './database.js'
import { exists, syncPath } from './file-sync.js'
import { knownMigrations } from './migrations.js'
import type { OnProgress, Page, RowSource, Shapes, Sums } from './store-copy.js'
import { castRows, type Queries, RowSum, type Sequence, type StoreTable } from './store-tables.js'

/**
 * A backup is gzip of JSON lines: what it is and of which version, then for each page of rows the name of its table and the rows
 * in PostgreSQL's text, and in the last line the sums of what it must hold.
 */
const FORMAT = 'multi-model-gateway store'
const VERSION = 1

interface Head {
  readonly format: string
  readonly version: number
  readonly madeAt: string
  readonly migrations: readonly string[]
  readonly shapes: Shapes
}

interface Tail {
  readonly sums: Sums
  readonly sequences: Readonly<Record<string, Sequence>>
}

type Line = Head | readonly [table: string, ...rows: string[]] | Tail

/** The best that is not slower than reading the store. */
const COMPRESSION = { level: 4 }

/** Writes a backup; under its name, and on the disk, once it is whole. Refuses a name that is taken. */
export async function writeBackup(source: RowSource, file: string, onProgress: OnProgress): Promise<Sums> {
  if (await exists(file)) throw taken(file)
  // Of this run alone: another one may write under the same name, or was killed and has left a part.
  const part = `${file}.part-${randomUUID()}`
  const sums = new Map(Object.keys(source.shapes).map((table) => [table, new RowSum()]))
  const result = (): Sums => Object.fromEntries([...sums].map(([table, sum]) => [table, sum.value]))
  async function* lines(): AsyncGenerator<string> {
    const { migrations, shapes } = source
    yield text({ format: FORMAT, version: VERSION, madeAt: new Date().toISOString(), migrations, shapes })
    for await (const { table, rows } of source.pages()) {
      const sum = sums.get(table)
      sum?.add(rows)
      yield text([table, ...rows])
      onProgress(table, sum?.value.rows ?? 0, false)
    }
    yield text({ sums: result(), sequences: await source.sequences() })
  }
  try {
    await pipeline(
      Readable.from(lines()),
      createGzip(COMPRESSION),
      createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }),
    )
    await giveName(part, file)
    await syncPath(dirname(file))
  } catch (error) {
    await rm(part, { force: true })
    throw isFull(error) ? new StoreUnusable(`The disk of ${file} is full; nothing was kept of the backup.`) : error
  }
  return result()
}

const taken = (file: string): StoreUnusable =>
  new StoreUnusable(`${file} is there already: a backup is written to a new file.`)

/** `rename` would replace what is there, a link does not. */
async function giveName(part: string, file: string): Promise<void> {
  try {
    await link(part, file)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) throw taken(file)
    await takeName(part, file)
    return
  }
  await rm(part)
}

/** On disks that know no links, as FAT: the name is taken first, by an empty file. */
async function takeName(part: string, file: string): Promise<void> {
  try {
    await (await open(file, 'wx', 0o600)).close()
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? taken(file) : error
  }
  await rename(part, file).catch(async (error: unknown) => {
    await rm(file)
    throw error
  })
}

/** What some readers take for ends of lines, as those of Node from version 24 on. */
const OTHER_LINE_ENDS = /[\u2028\u2029]/g

/** Throws where the reader would refuse the line: a backup that cannot be read is none. */
function text(line: Line): string {
  const json = JSON.stringify(line).replace(OTHER_LINE_ENDS, (end) => (end === '\u2028' ? '\\u2028' : '\\u2029'))
  if (json.length <= LONGEST_LINE_CHARACTERS) return `${json}\n`
  throw new StoreUnusable('A row of the store is too large for a backup: it takes more than 256 million characters.')
}

const isFull = (error: unknown): boolean => hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT')

/**
 * Reads a backup to its end and checks its lines and sums first: a damaged one, or one that was made by hand and is none, rejects
 * with `StoreUnusable` before a store is opened. Whether its rows fit the tables is found out by `assertFits`.
 */
export async function readBackup(file: string, onProgress: OnProgress): Promise<RowSource> {
  let head: Head | undefined
  let tail: Tail | undefined
  const sums = new Map<string, RowSum>()
  let number = 0
  for await (const line of linesOf(file)) {
    number += 1
    if (tail !== undefined) throw damaged(file, 'it goes on after its end')
    if (head === undefined) {
      head = await headOf(line, file)
      for (const table of Object.keys(head.shapes)) sums.set(table, new RowSum())
    } else if (isPage(line)) {
      const [table, ...rows] = line
      const sum = sums.get(table)
      if (sum === undefined)
        throw damaged(file, `line ${number} has rows of an unknown table, ${JSON.stringify(table)}`)
      sum.add(rows)
      onProgress(table, sum.value.rows, true)
    } else if (isTail(line)) tail = line
    else throw damaged(file, `line ${number} holds neither rows nor the sums of the end`)
  }
  if (head === undefined) throw damaged(file, 'it is empty')
  if (tail === undefined) throw damaged(file, 'its end is missing')
  for (const [table, sum] of sums) {
    const expected = tail.sums[table]
    if (sum.value.rows !== expected?.rows || sum.value.checksum !== expected.checksum)
      throw damaged(file, `its rows of ${table} are not those that were written`)
  }
  const { migrations, shapes, madeAt } = head
  const { sequences } = tail
  return {
    name: `the backup of ${madeAt}`,
    migrations,
    shapes,
    assertFits: (queries, tables) => assertFits(file, shapes, queries, tables, onProgress),
    pages: () => pagesOf(file),
    sequences: () => Promise.resolve(sequences),
  }
}

async function assertFits(
  file: string,
  shapes: Shapes,
  queries: Queries,
  tables: readonly StoreTable[],
  onProgress: OnProgress,
): Promise<void> {
  for (const table of tables) assertColumns(file, table, shapes[table.name] ?? [])
  const passed = new Map(tables.map((table) => [table.name, { table, rows: 0 }]))
  for await (const { table: name, rows } of pagesOf(file)) {
    const entry = passed.get(name)
    if (entry === undefined) continue
    await castRows(queries, entry.table, rows).catch((error: unknown) => {
      const place = `one of its rows ${entry.rows + 1} to ${entry.rows + rows.length} of ${name}`
      throw isOfData(error) ? damaged(file, `${place} does not fit the table (${error.message})`, error) : error
    })
    entry.rows += rows.length
    onProgress(name, entry.rows, true)
  }
}

function assertColumns(file: string, { name, columns }: StoreTable, found: readonly string[]): void {
  const missing = columns.find((column) => !found.includes(column))
  if (missing !== undefined) throw damaged(file, `its table ${name} lacks the column ${missing}`)
  const unknown = found.find((column) => !columns.includes(column))
  if (unknown !== undefined) throw damaged(file, `its table ${name} has an unknown column, ${JSON.stringify(unknown)}`)
  if (found.join() !== columns.join()) throw damaged(file, `the columns of its table ${name} are in another order`)
}

/** PostgreSQL's class of such errors. */
const isOfData = (error: unknown): error is Error =>
  isNativeError(error) && 'code' in error && String(error.code).startsWith('22')

async function* pagesOf(file: string): AsyncGenerator<Page> {
  for await (const line of linesOf(file)) {
    if (!isPage(line)) continue
    const [table, ...rows] = line
    yield { table, rows }
  }
}

async function* linesOf(file: string): AsyncGenerator {
  const bytes = createReadStream(file).on('error', (error) => unpacked.destroy(error))
  const unpacked = bytes.pipe(createGunzip())
  let number = 0
  try {
    for await (const line of splitLines(unpacked)) {
      number += 1
      yield parsed(line, file, number)
    }
  } catch (error) {
    throw error instanceof StoreUnusable ? error : unreadable(file, error)
  } finally {
    bytes.destroy()
    unpacked.destroy()
  }
}

/** Pages have 8 MiB of rows, or one row; quotes and the like take up to six times as much in JSON. */
const LONGEST_LINE_CHARACTERS = 256 * 1024 * 1024

/** The lines of UTF-8, ended by LF alone, which the last one may lack. One line at a time is held. */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  longest = LONGEST_LINE_CHARACTERS,
): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let begun: string[] = []
  let length = 0
  for await (const chunk of chunks) {
    const pieces = decoder.write(chunk).split('\n')
    for (const [at, piece] of pieces.entries()) {
      begun.push(piece)
      length += piece.length
      if (length > longest) throw new RangeError(`a line has more than ${longest} characters`)
      if (at === pieces.length - 1) break
      yield begun.join('')
      begun = []
      length = 0
    }
  }
  const last = begun.join('') + decoder.end()
  if (last !== '') yield last
}

/** What V8 says of wrong JSON would quote a row. */
function parsed(text: string, file: string, number: number): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw damaged(file, `line ${number} is no JSON`, cause)
  }
}

function unreadable(file: string, error: unknown): StoreUnusable {
  if (hasCode(error, 'ENOENT')) return new StoreUnusable(`There is no file ${file}.`)
  if (hasCode(error, 'Z_BUF_ERROR')) return damaged(file, 'it breaks off before its end', error)
  const why = isNativeError(error) ? error.message : String(error)
  if (error instanceof RangeError) return damaged(file, why, error)
  if (!hasCode(error, 'Z_DATA_ERROR')) return new StoreUnusable(`${file} cannot be read: ${why}.`, { cause: error })
  const isOther = why === 'incorrect header check'
  return damaged(file, isOther ? 'it is not compressed with gzip' : `its compressed bytes were changed (${why})`, error)
}

async function headOf(line: unknown, file: string): Promise<Head> {
  if (!isRecord(line) || line['format'] !== FORMAT)
    throw damaged(file, 'its first line does not say that it is the backup of a store')
  if (line['version'] !== VERSION)
    throw new StoreUnusable(`${file} was made by a newer version of the gateway. Run that version, or a newer one.`)
  if (!isHead(line)) throw damaged(file, 'its first line lacks the time, the migrations or the columns of the tables')
  const { tables } = await knownMigrations(line.migrations)
  const unknown = Object.keys(line.shapes).find((name) => !tables.includes(name))
  if (unknown === undefined) return line
  throw damaged(file, `its first line names an unknown table, ${JSON.stringify(unknown)}`)
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((text) => typeof text === 'string')

const isHead = (line: object): line is Head => {
  const { madeAt, migrations, shapes } = line as Partial<Record<keyof Head, unknown>>
  const isWhole = typeof madeAt === 'string' && isTexts(migrations) && migrations.length > 0
  return isWhole && isRecord(shapes) && Object.values(shapes).every(isTexts)
}

const isPage = (line: unknown): line is readonly [table: string, ...rows: string[]] => isTexts(line) && line.length > 0

const isTail = (line: unknown): line is Tail => {
  if (!isRecord(line)) return false
  const { sums, sequences } = line
  return (
    isRecord(sums) &&
    Object.values(sums).every(isRecord) &&
    isRecord(sequences) &&
    Object.values(sequences).every(isSequence)
  )
}

const isSequence = (value: unknown): boolean =>
  isRecord(value) && /^\d{1,18}$/.test(String(value['last'])) && typeof value['isCalled'] === 'boolean'

const damaged = (file: string, why: string, cause?: unknown): StoreUnusable =>
  new StoreUnusable(`${file} cannot be restored, it is damaged: ${why}.`, { cause })
