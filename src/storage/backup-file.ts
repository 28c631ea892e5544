import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isNativeError } from 'node:util/types'
import { createGunzip, createGzip } from 'node:zlib'
import { hasCode } from '../core/errors.js'
import { StoreUnusable } from './database.js'
import { exists, syncPath } from './file-sync.js'
import type { OnProgress, Page, RowSource, Shapes, Sums } from './store-copy.js'
import { RowSum, type Sequence } from './store-tables.js'

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
  const part = `${file}.part`
  if (await exists(file)) throw new StoreUnusable(`${file} is there already: a backup is written to a new file.`)
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
      createWriteStream(part, { mode: 0o600, flush: true }),
    )
    await rename(part, file)
    await syncPath(dirname(file))
  } catch (error) {
    await rm(part, { force: true })
    throw isFull(error) ? new StoreUnusable(`The disk of ${file} is full; nothing was kept of the backup.`) : error
  }
  return result()
}

const text = (line: Line): string => `${JSON.stringify(line)}\n`

const isFull = (error: unknown): boolean => hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT')

/** Reads a backup to its end and checks its sums first: a damaged one rejects with `StoreUnusable` before anything is written. */
export async function readBackup(file: string, onProgress: OnProgress): Promise<RowSource> {
  let head: Head | undefined
  let tail: Tail | undefined
  const sums = new Map<string, RowSum>()
  for await (const line of linesOf(file)) {
    if (tail !== undefined) throw damaged(file, 'it goes on after its end')
    if (head === undefined) {
      head = headOf(line, file)
      for (const table of Object.keys(head.shapes)) sums.set(table, new RowSum())
    } else if (Array.isArray(line)) {
      const [table = '', ...rows] = line as string[]
      sums.get(table)?.add(rows)
      onProgress(table, sums.get(table)?.value.rows ?? 0, true)
    } else tail = line as Tail
  }
  if (head === undefined || tail === undefined) throw damaged(file, 'its end is missing')
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
    pages: () => pagesOf(file),
    sequences: () => Promise.resolve(sequences),
  }
}

async function* pagesOf(file: string): AsyncGenerator<Page> {
  for await (const line of linesOf(file)) {
    if (!Array.isArray(line)) continue
    const [table = '', ...rows] = line as string[]
    yield { table, rows }
  }
}

async function* linesOf(file: string): AsyncGenerator<Line> {
  const bytes = createReadStream(file).on('error', (error) => unpacked.destroy(error))
  const unpacked = bytes.pipe(createGunzip())
  // An error of the stream would not reach who reads the lines.
  const failed = new Promise<never>((_, reject) => unpacked.once('error', reject))
  failed.catch(() => undefined)
  const lines = createInterface({ input: unpacked, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await Promise.race([lines.next(), failed])
      if (next.done === true) return
      yield JSON.parse(next.value) as Line
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw new StoreUnusable(`There is no file ${file}.`)
    throw damaged(file, isNativeError(error) ? error.message : String(error))
  } finally {
    bytes.destroy()
    unpacked.destroy()
  }
}

function headOf(line: Line, file: string): Head {
  const head = line as Head
  if (head.format !== FORMAT) throw damaged(file, 'it is no backup of a store')
  if (head.version === VERSION) return head
  throw new StoreUnusable(`${file} was made by a newer version of the gateway. Run that version, or a newer one.`)
}

const damaged = (file: string, why: string): StoreUnusable =>
  new StoreUnusable(`${file} cannot be restored, it is damaged: ${why}.`)
