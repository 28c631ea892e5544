import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { usageRecord } from '../../test/support/task-rows.js'
import {
  away,
  idsOf,
  records,
  bufferedIds,
  diskBufferFolder,
  type UsageWriterLab,
  usageWriterLab,
} from '../../test/support/usage-writer-lab.js'
import type { LogLevel } from '../config/settings.js'
import type { UsageRecord } from '../core/usage-record.js'
import { createLogging } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { keepNewest, type KeptRows, ShutdownBuffer } from './disk-buffer-shutdown.js'
import { DiskBufferFiles } from './disk-buffer-writer.js'
import { bufferedRow, DiskBuffer } from './disk-buffer.js'
import { UsageMetrics } from './usage-metrics.js'

describe('The rows of processes whose usage no report has asked for', () => {
  let place: string
  let path: string

  beforeEach(async () => {
    place = await diskBufferFolder()
    path = join(place, 'rows')
  })
  afterEach(() => rm(place, { recursive: true }))

  /** As at the end of a process. */
  const keep = (many: readonly UsageRecord[], most = 1000, bytes?: number): KeptRows =>
    keepNewest(new DiskBuffer(path, bytes).pending(), many, most)
  const names = async (): Promise<string[]> => (await readdir(path)).sort()
  const bytesOf = (many: readonly UsageRecord[]): number =>
    many.reduce((sum, record) => sum + Buffer.byteLength(bufferedRow(record)), 0)
  const at = (record: UsageRecord, atMs: number): UsageRecord => ({ ...record, atMs })

  it('are in one file, the newest of all, whichever process they are of', async () => {
    const [first, second] = [records(6), records(6)]
    // Interleaved by their times.
    keep(
      first.map((record, index) => at(record, 2 * index)),
      8,
    )
    const kept = keep(
      second.map((record, index) => at(record, 2 * index + 1)),
      8,
    )
    expect(kept).toEqual({ rows: 8, forgotten: 4, lost: [] })
    expect(await names()).toEqual([expect.stringMatching(/\.unasked\.rows$/)])
    const turns = first.flatMap((record, index) => [record, second[index] ?? record])
    expect(await bufferedIds(path)).toEqual(idsOf(turns.slice(4)))
  })

  it('are taken by the process that opens a store, like all others', () => {
    const many = records(3)
    keep(many)
    new DiskBuffer(path).append(many.map(bufferedRow))
    expect(new DiskBuffer(path).take()).toHaveLength(2)
  })

  it('leave the files of a process that goes on as they are, and what a store was asked for', async () => {
    const running = new DiskBufferFiles(new DiskBuffer(path))
    await running.append(records(3))
    new DiskBuffer(path).append(records(2).map(bufferedRow))
    const others = await names()
    const many = records(4)
    keep(many)
    expect((await names()).filter((name) => !name.includes('unasked'))).toEqual(others)
    await running.append(records(3))
    expect(running.release().map((file) => basename(file))).toEqual([expect.any(String)])
    expect(await bufferedIds(path)).toHaveLength(3 + 2 + 4 + 3)
  })

  it('leave to the process that stores them the files that are taken already', async () => {
    const [first, second] = [records(5), records(5)]
    keep(first)
    const [taken = ''] = new DiskBuffer(path).take()
    expect(keep(second, 5)).toEqual({ rows: 5, forgotten: 0, lost: [] })
    expect(existsSync(taken)).toBe(true)
    expect([...(await bufferedIds(path))].sort()).toEqual(idsOf([...first, ...second]).sort())
  })

  it('are all there when their file is taken in the very moment it is written', async () => {
    const [first, second] = [records(3), records(4)]
    const folder = new DiskBuffer(path).pending()
    let isTaken = false
    const append = folder.append.bind(folder)
    // Another process ends once the file is open: it merges the files that exist, which this process has to notice.
    folder.append = (rows) => {
      const watched = Object.assign([...rows], {
        slice: (from?: number, to?: number) => {
          if (!isTaken) keep(second)
          isTaken = true
          return rows.slice(from, to)
        },
      })
      return append(watched)
    }
    keepNewest(folder, first, 1000)
    expect(isTaken).toBe(true)
    expect([...new Set(await bufferedIds(path))].sort()).toEqual(idsOf([...first, ...second]).sort())
  })

  it('stay in their files when there is no room for one of them all, and the others are lost', async () => {
    const [first, second] = [records(4), records(4)]
    keep(first)
    const kept = keep(second, 1000, bytesOf([...first, ...first, ...second.slice(0, 1)]))
    expect(idsOf(kept.lost)).toEqual(idsOf(second.slice(1)))
    expect(new Set(await bufferedIds(path))).toEqual(new Set(idsOf([...first, ...second.slice(0, 1)])))
    // The next process with a store reads the rows.
    expect(new DiskBuffer(path).take()).toHaveLength(2)
  })

  it('are lost, which is said with its reason, where no file can be written', async () => {
    await writeFile(path, 'a file where the folder should be')
    const many = records(3)
    const kept = keep(many)
    expect(kept).toMatchObject({ rows: 0, forgotten: 0, lost: many })
    expect(kept.error).toMatchObject({ code: 'EEXIST' })
    await rm(path)
  })

  it('lack what cannot be read of a damaged file, and nothing else', async () => {
    const [one, two] = records(2)
    if (one === undefined || two === undefined) throw new Error('two records')
    await mkdir(path)
    await writeFile(join(path, '1-killed.unasked.rows'), `${bufferedRow(one)}${bufferedRow(two).slice(0, 40)}`)
    const many = records(1)
    expect(keep(many)).toEqual({ rows: 2, forgotten: 0, lost: [] })
    expect(await bufferedIds(path)).toEqual(idsOf([one, ...many]))
    expect(await names()).toHaveLength(1)
  })
})

describe('Usage that the store did not take before the end', () => {
  interface Line {
    readonly level: number
    readonly msg: string
    readonly rows?: number
    readonly folder?: string
    readonly err?: { readonly message: string }
    readonly reason?: string
    readonly record?: UsageRecord
  }

  const MANY = 20_000

  let place: string
  let errorFile: string
  let descriptor: number
  let metrics: Metrics
  let logged: Line[]

  beforeEach(async () => {
    place = await diskBufferFolder()
    errorFile = join(place, 'standard-error')
    descriptor = openSync(errorFile, 'a')
    metrics = new Metrics()
    logged = []
  })
  afterEach(async () => {
    closeSync(descriptor)
    await rm(place, { recursive: true })
  })

  /** Its log writes nothing, unless a level is set. */
  function leftovers(folder: DiskBuffer, level: LogLevel = 'silent'): ShutdownBuffer {
    const { logger } = createLogging(level, { write: (line) => logged.push(JSON.parse(line) as Line) })
    return new ShutdownBuffer(folder, new UsageMetrics(metrics), logger, descriptor)
  }

  async function writtenLines(): Promise<readonly Line[]> {
    const lines = (await readFile(errorFile, 'utf8')).split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as Line)
  }

  const FORGOTTEN = 'usage that nobody has asked to store is forgotten: no file takes it'

  /** Single records are neither logged nor counted. */
  async function isNoLoss(): Promise<void> {
    expect(await writtenLines()).toEqual([])
    expect(await metrics.registry.metrics()).not.toMatch(/^gateway_usage_dropped_total\{/m)
  }

  const idsLogged = (lines: readonly Line[]): string[] => lines.map(({ record }) => record?.id ?? '')

  it('is in a file, and nowhere else', async () => {
    const folder = new DiskBuffer(join(place, 'rows'))
    const many = records(MANY)
    const kept = leftovers(folder)
    kept.keep(many)
    kept.keep([])
    expect(await bufferedIds(folder.path)).toEqual(idsOf(many))
    expect(await writtenLines()).toEqual([])
    expect(await metrics.registry.metrics()).not.toMatch(/^gateway_usage_dropped_total\{/m)
  })

  it('is on standard error where no file can be written, all of it, whatever the log tells', async () => {
    await writeFile(join(place, 'rows'), '')
    const many = records(MANY)
    leftovers(new DiskBuffer(join(place, 'rows', 'deeper'))).keep(many)
    const [head, ...lines] = await writtenLines()
    expect(head).toMatchObject({ level: 50, rows: MANY, err: { message: expect.stringContaining('ENOTDIR') } })
    expect(head?.msg).toBe('usage can neither be stored nor kept in a file: its records follow, one in a line')
    expect(idsLogged(lines)).toEqual(idsOf(many))
    expect(lines[0]).toEqual({ ...lines[0], level: 50, reason: 'shutdown', msg: 'usage', record: many[0] })
    expect(await metrics.registry.metrics()).toMatch(
      new RegExp(`^gateway_usage_dropped_total\\{reason="shutdown"\\} ${MANY}$`, 'm'),
    )
  })

  it('is in a file as far as there is room, and on standard error from there', async () => {
    const many = records(10)
    const bytes = many.slice(0, 4).reduce((sum, record) => sum + JSON.stringify(record).length + 1, 0)
    const folder = new DiskBuffer(join(place, 'rows'), bytes)
    leftovers(folder).keep(many)
    expect(await bufferedIds(folder.path)).toEqual(idsOf(many.slice(0, 4)))
    const [head, ...lines] = await writtenLines()
    expect(head).toMatchObject({ rows: 6 })
    expect(idsLogged(lines)).toEqual(idsOf(many.slice(4)))
  })

  it('is forgotten where no report had asked for it and no file can be written: one line says how much, and why', async () => {
    await writeFile(join(place, 'rows'), '')
    const folder = new DiskBuffer(join(place, 'rows', 'deeper'))
    expect(leftovers(folder, 'trace').keepPending(records(1000), 1000)).toBe(0)
    const why = { message: expect.stringContaining('ENOTDIR') }
    expect(logged).toMatchObject([{ level: 40, msg: FORGOTTEN, rows: 1000, folder: folder.path, err: why }])
    expect(JSON.stringify(logged)).not.toContain('"record"')
    await isNoLoss()
  })

  it('is forgotten as far as there is no room, where no report had asked for it: one line says how much, and why', async () => {
    const many = records(10)
    const bytes = many.slice(0, 4).reduce((sum, record) => sum + JSON.stringify(record).length + 1, 0)
    const folder = new DiskBuffer(join(place, 'rows'), bytes)
    expect(leftovers(folder, 'warn').keepPending(many, 1000)).toBe(0)
    expect(await bufferedIds(folder.path)).toEqual(idsOf(many.slice(0, 4)))
    const why = { message: 'the files there are as large as they may be' }
    expect(logged).toMatchObject([{ level: 40, msg: FORGOTTEN, rows: 6, folder: folder.path, err: why }])
    await isNoLoss()
  })

  it('is told how much of it is forgotten, which counts as no loss', async () => {
    const folder = new DiskBuffer(join(place, 'rows'))
    const kept = leftovers(folder)
    const many = records(10)
    expect(kept.keepPending(many.slice(0, 6), 7)).toBe(0)
    expect(kept.keepPending(many.slice(6), 7)).toBe(3)
    expect(kept.keepPending([], 7)).toBe(0)
    expect(await bufferedIds(folder.path)).toEqual(idsOf(many.slice(3)))
    await isNoLoss()
  })

  it('waits for a reader that is slow, and not for one that is gone', async () => {
    await writeFile(join(place, 'rows'), '')
    const folder = new DiskBuffer(join(place, 'rows', 'deeper'))
    const reader = spawn('sh', ['-c', 'sleep 0.3; wc -l'], { stdio: ['pipe', 'pipe', 'inherit'] })
    const pipe = (reader.stdin as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
    const { logger } = createLogging('silent', { write: () => undefined })
    const many = records(2000)
    new ShutdownBuffer(folder, new UsageMetrics(metrics), logger, pipe).keep(many)
    reader.stdin.end()
    const [counted] = (await once(reader.stdout, 'data')) as [Buffer]
    expect(Number(counted.toString())).toBe(many.length + 1)
    // A descriptor that does not exist.
    new ShutdownBuffer(folder, new UsageMetrics(new Metrics()), logger, 9999).keep(many)
  })
})

describe('What no report had asked for when its process ended', () => {
  const FORGOTTEN = 'usage is not stored here: the oldest records are forgotten'

  let place: string
  let path: string
  const labs: UsageWriterLab[] = []

  beforeEach(async () => {
    place = await diskBufferFolder()
    path = join(place, 'rows')
  })
  afterEach(async () => {
    for (const lab of labs.splice(0)) await lab.close()
    await rm(place, { recursive: true })
  })

  /** A process on that directory. Its usage is pending unless `usage` stores it. */
  async function start(usage: object = {}): Promise<UsageWriterLab> {
    const lab = await usageWriterLab({ store: undefined, ...usage }, undefined, path)
    lab.recovery.onModuleInit()
    labs.push(lab)
    return lab
  }

  /** A process that has recorded these rows and is stopped. */
  async function used(many: readonly UsageRecord[], usage: object = {}): Promise<UsageWriterLab> {
    const lab = await start(usage)
    for (const record of many) lab.writer.add([record])
    await lab.writer.stop()
    return lab
  }

  const inFiles = async (): Promise<string[]> => [...(await bufferedIds(path))]
  const files = (): Promise<string[]> => readdir(path).catch(() => [])
  const logged = ({ lines }: UsageWriterLab, text: string): number => lines.filter(({ msg }) => msg === text).length

  /** In the order of their times. */
  const later = (count: number, fromMs: number): UsageRecord[] =>
    records(count).map((record, index) => ({ ...record, atMs: fromMs + index }))

  it('waits in its file until a report asks, which gets all of it at once, each record once', async () => {
    const some = records(4)
    await used(some)
    const next = await start()
    const own = records(2)
    next.writer.add(own)
    next.writer.startWriting()
    expect([next.store.opened, await inFiles(), await files()]).toEqual([0, idsOf(some), [expect.any(String)]])
    await next.writer.flush()
    expect(next.written().sort()).toEqual(idsOf([...some, ...own]).sort())
    expect([next.store.batches.flat().length, await files()]).toEqual([6, []])
    await next.writer.flush()
    expect(next.store.batches.flat()).toHaveLength(6)
  })

  it('is stored when anything else opens the store', async () => {
    const some = records(3)
    await used(some)
    const next = await start()
    await next.database.open()
    await eventually(async () => (await files()).length === 0)
    expect(next.written()).toEqual(idsOf(some))
  })

  it('is in the file as well when the process ends without a word', async () => {
    const lab = await start()
    const some = records(3)
    lab.writer.add(some)
    lab.writer.persistRemaining()
    lab.writer.persistRemaining()
    expect([await inFiles(), (await files()).length]).toEqual([idsOf(some), 1])
    const late = records(1)
    lab.writer.add(late)
    await lab.writer.stop()
    expect([await inFiles(), (await files()).length]).toEqual([idsOf([...some, ...late]), 1])
  })

  it('is in no file where usage is not to be stored, and stays in those there are', async () => {
    const some = records(2)
    await used(some)
    const off = await used(records(2), { store: false })
    expect([await inFiles(), off.lines]).toEqual([idsOf(some), []])
  })

  it('is never more than the newest thousand in one file, however often the gateway is restarted', async () => {
    const many = later(2500, 1_800_000_000_000)
    const first = await used(many.slice(0, 700))
    const second = await used(many.slice(700, 1400))
    expect([await inFiles(), (await files()).length]).toEqual([idsOf(many.slice(400, 1400)), 1])
    const third = await used(many.slice(1400))
    expect([await inFiles(), (await files()).length]).toEqual([idsOf(many.slice(1500)), 1])
    // Once for each process that forgets.
    expect([first, second, third].map((lab) => logged(lab, FORGOTTEN))).toEqual([0, 1, 1])
    for (const lab of [first, second, third]) expect(await lab.metric('gateway_usage_dropped_total')).toBe(0)
    const next = await start()
    await next.writer.flush()
    expect(next.written().sort()).toEqual(idsOf(many.slice(1500)).sort())
  })

  it('is bounded by a smaller queue, too', async () => {
    const many = later(9, 1_800_000_000_000)
    await used(many.slice(0, 4), { queueRows: 5 })
    await used(many.slice(4), { queueRows: 5 })
    expect(await inFiles()).toEqual(idsOf(many.slice(4)))
  })

  it('is kept beside what a store was asked for and did not take, of which nothing is forgotten', async () => {
    const wanted = records(1500)
    const one = await start({ store: true })
    one.store.before = away
    one.writer.add(wanted)
    await one.writer.stop()
    const many = later(1200, 1_800_000_000_000)
    await used(many)
    expect((await inFiles()).sort()).toEqual(idsOf([...wanted, ...many.slice(200)]).sort())
    const next = await start()
    await next.writer.flush()
    await eventually(async () => (await files()).length === 0)
    expect(next.written().sort()).toEqual(idsOf([...wanted, ...many.slice(200)]).sort())
  })

  it('is that of each of several processes on the directory that end together', async () => {
    const labs = [await start(), await start(), await start()]
    const all = labs.map(() => later(100, usageRecord().atMs))
    for (const [index, lab] of labs.entries()) lab.writer.add(all[index] ?? [])
    await Promise.all(labs.map(({ writer }) => writer.stop()))
    const next = await start()
    await next.writer.flush()
    expect(next.written().sort()).toEqual(idsOf(all.flat()).sort())
    expect([next.store.batches.flat().length, await files()]).toEqual([300, []])
  })
})
