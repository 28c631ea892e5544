import { existsSync } from 'node:fs'
import { appendFile, chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { usageRecord } from '../../test/support/task-rows.js'
import {
  away,
  idsOf,
  records,
  bufferedIds,
  diskBufferFiles,
  diskBufferFolder,
  type UsageWriterLab,
  usageWriterLab,
} from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'
import { DiskBufferRecovery } from './record-delivery.js'
import { DiskBufferFiles } from './disk-buffer-writer.js'
import { linesOf, recordOfRow, bufferedRow, DiskBuffer } from './disk-buffer.js'

describe('disk buffer folder', () => {
  let place: string
  let path: string
  let folder: DiskBuffer

  beforeEach(async () => {
    place = await diskBufferFolder()
    path = join(place, 'data', 'rows')
    folder = new DiskBuffer(path)
  })
  afterEach(() => rm(place, { recursive: true }))

  const rows = (count: number): string[] => Array.from({ length: count }, (_, index) => `row ${index}\n`)

  describe('Rows that could not be stored', () => {
    it('are in one file of the process, which no other user can read, and those that come later behind them', async () => {
      expect(folder.append(rows(2500))).toBe(2500)
      expect(folder.append(['late\n'])).toBe(1)
      const [name = '', ...others] = await readdir(path)
      expect(others).toEqual([])
      expect((await stat(join(path, name))).mode & 0o777).toBe(0o600)
      expect((await stat(path)).mode & 0o777).toBe(0o700)
      expect((await readFile(join(path, name), 'utf8')).split('\n').filter((line) => line !== '')).toEqual([
        ...rows(2500).map((row) => row.trim()),
        'late',
      ])
    })

    it('of two processes are in two files', async () => {
      folder.append(['one\n'])
      new DiskBuffer(path).append(['two\n'])
      expect(await diskBufferFiles(path)).toHaveLength(2)
    })

    it('find room as far as there is any, files of others included', () => {
      new DiskBuffer(path).append(['0123456789\n'])
      const small = new DiskBuffer(path, 32)
      expect(small.append(['0123456789\n', 'é3456789\n', 'one more\n'])).toBe(2)
      expect(small.append(['x\n'])).toBe(0)
    })

    it('are refused with what the file system says, where nothing can be written', async () => {
      await mkdir(join(place, 'data'))
      await writeFile(path, 'a file where the folder should be')
      expect(() => folder.append(['row\n'])).toThrow(/EEXIST|ENOTDIR/)
      await rm(path)
      if (process.getuid?.() === 0) return
      await chmod(join(place, 'data'), 0o500)
      expect(() => folder.append(['row\n'])).toThrow(/EACCES/)
    })
  })

  describe('The process that starts next', () => {
    it('takes all files, the oldest first, and they are there until it removes them', async () => {
      await mkdir(path, { recursive: true })
      for (const name of ['2-b.rows', '1-a.rows', '0-dead.taken']) await writeFile(join(path, name), '')
      await writeFile(join(path, 'notes.txt'), '')
      const taken = ['0-dead', '1-a', '2-b'].map((name) => join(path, `${name}.taken`))
      expect(folder.take()).toEqual(taken)
      expect(new DiskBuffer(path).take()).toEqual(taken)
      for (const file of taken) folder.remove(file)
      folder.remove(taken[0] ?? '')
      expect(folder.take()).toEqual([])
      expect(await readdir(path)).toEqual(['notes.txt'])
    })

    it('takes nothing where there is nothing, and makes no folder', async () => {
      expect(folder.take()).toEqual([])
      expect(await readdir(place)).toEqual([])
    })

    it('keeps a process that is still writing from losing what it writes', async () => {
      folder.append(['read\n'])
      const [file = ''] = new DiskBuffer(path).take()
      // Between the check of the file and its removal.
      folder.append(['written meanwhile\n'])
      folder.remove(file)
      expect((await diskBufferFiles(path)).join('')).toContain('written meanwhile')
    })

    it('takes what comes later under another name, also while the file before is still being read', async () => {
      folder.append(['first\n'])
      const [first = ''] = new DiskBuffer(path).take()
      folder.append(['second\n'])
      expect(new DiskBuffer(path).take()).toHaveLength(2)
      expect(await readFile(first, 'utf8')).toBe('first\n')
    })

    it('may take a file in the very moment something is written into it: then that is in another one, too', async () => {
      folder.append(['first\n'])
      const [name = ''] = await readdir(path)
      const row = ['row\n']
      // Requested once the file is open.
      const slice = (from?: number, to?: number): string[] => {
        if (existsSync(join(path, name))) new DiskBuffer(path).take()
        return row.slice(from, to)
      }
      expect(folder.append(Object.assign([...row], { slice }))).toBe(1)
      const names = (await readdir(path)).sort()
      expect(names.map((each) => each.slice(each.lastIndexOf('.')))).toEqual(['.taken', '.rows'])
      expect(await readFile(join(path, names[1] ?? ''), 'utf8')).toBe('row\n')
    })
  })

  describe('Rows of a process that goes on', () => {
    let files: DiskBufferFiles
    beforeEach(() => {
      files = new DiskBufferFiles(folder)
    })

    const bytesOf = (many: readonly UsageRecord[]): number =>
      many.reduce((sum, record) => sum + Buffer.byteLength(bufferedRow(record)), 0)

    /** Runs this whenever some of the rows are read: the file is open by then. */
    function whenRead(many: UsageRecord[], act: (asked: number) => void): UsageRecord[] {
      const slice = (from?: number, to?: number): UsageRecord[] => {
        const asked = many.slice(from, to)
        act(asked.length)
        return asked
      }
      return Object.assign([...many], { slice })
    }

    it('are in one file, which no other user can read, until it is released', async () => {
      const many = records(250)
      expect(await files.append(many.slice(0, 120))).toBe(120)
      expect(await files.append(many.slice(120))).toBe(130)
      const [file = '', ...others] = files.release()
      expect([others, await bufferedIds(path)]).toEqual([[], idsOf(many)])
      expect([(await stat(file)).mode & 0o777, (await stat(path)).mode & 0o777]).toEqual([0o600, 0o700])
      const late = records(1)
      await files.append(late)
      expect([(await readFile(file, 'utf8')).split('\n')].map(({ length }) => length)).toEqual([251])
      expect(files.release()).toHaveLength(1)
      expect(files.release()).toEqual([])
    })

    it('are in several files when they are many', async () => {
      const many = records(40)
      files = new DiskBufferFiles(new DiskBuffer(path), bytesOf(many.slice(0, 15)))
      for (let at = 0; at < 40; at += 10) await files.append(many.slice(at, at + 10))
      expect((await diskBufferFiles(path)).map((text) => text.split('\n').length - 1)).toEqual([20, 20])
      expect(files.release()).toHaveLength(2)
    })

    it('find room as far as there is any, files of others included', async () => {
      const many = records(120)
      new DiskBuffer(path).append(many.slice(0, 30).map(bufferedRow))
      const small = new DiskBufferFiles(new DiskBuffer(path, bytesOf(many.slice(0, 100))))
      expect(await small.append(many.slice(30))).toBe(70)
      expect(await small.append(many.slice(100))).toBe(0)
      expect((await bufferedIds(path)).toSorted()).toEqual(idsOf(many.slice(0, 100)).sort())
    })

    it('are refused with what the file system says, where nothing can be written', async () => {
      await writeFile(join(place, 'data'), 'a file where the folder should be')
      await expect(files.append(records(1))).rejects.toThrow(/EEXIST|ENOTDIR/)
    })

    it('are not in the file when that was said of any of them', async () => {
      const [first, second] = [records(10), records(200)]
      await files.append(first)
      // One of them cannot be serialized.
      const broken = [...second.slice(0, 150), { ...second[150], units: 1n } as never]
      await expect(files.append(broken)).rejects.toThrow(TypeError)
      expect(await bufferedIds(path)).toEqual(idsOf(first))
      await files.append(second)
      expect(await bufferedIds(path)).toEqual(idsOf([...first, ...second]))
    })

    it('are in a new file when another process has taken the one there was', async () => {
      const [first, second, third] = [records(3), records(3), records(3)]
      const other = new DiskBuffer(path)
      await files.append(first)
      const taken = other.take()
      await files.append(second)
      const takenLater = other.take()
      await files.append(third)
      expect(new Set([...taken, ...takenLater]).size).toBe(2)
      expect([...(await bufferedIds(path))].sort()).toEqual(idsOf([...first, ...second, ...third]).sort())
    })

    it('may be taken in the very moment they are written: then they are in another file, too', async () => {
      const [first, second] = [records(3), records(120)]
      await files.append(first)
      let taken: readonly string[] | undefined
      const taking = whenRead(second, () => {
        taken ??= new DiskBuffer(path).take()
      })
      expect(await files.append(taking)).toBe(120)
      const [file = '', ...others] = files.release()
      expect(others).toEqual([])
      const lines = (await readFile(file, 'utf8')).trim().split('\n')
      expect(lines.map((line) => (JSON.parse(line) as UsageRecord).id)).toEqual(idsOf(second))
      expect(await readdir(path)).toHaveLength(2)
    })

    it('are made into text a few at a time, and others have their turns in between', async () => {
      let turn = 0
      const asked: { readonly rows: number; readonly turn: number }[] = []
      const many = whenRead(records(2000), (rows) => {
        turn++
        asked.push({ rows, turn })
        // Other waiting work runs before more rows are requested.
        setImmediate(() => turn++)
      })
      expect(await files.append(many)).toBe(2000)
      expect(Math.max(...asked.map(({ rows }) => rows))).toBeLessThanOrEqual(50)
      const gaps = asked.slice(1).map(({ turn: at }, index) => at - (asked[index]?.turn ?? 0))
      expect(Math.min(...gaps)).toBeGreaterThan(1)
    })
  })
})

describe('A row of a disk buffer file', () => {
  it.each([
    usageRecord(),
    usageRecord({
      requestId: null,
      model: 'a "model"\n with é 😀',
      channelId: null,
      durationMs: null,
      units: { audioSeconds: 1.7000000476837158 },
      reported: null,
      estimated: '{"a":1.0}',
      pricing: 'unpriced',
      cost: null,
    }),
  ])('holds all of a record, in one line', (record) => {
    const row = bufferedRow(record)
    expect(row.split('\n')).toHaveLength(2)
    expect(recordOfRow(row.trim())).toEqual(record)
  })

  it('is worth nothing when any part of it is missing', () => {
    const row = bufferedRow(usageRecord()).trim()
    for (let length = 0; length < row.length; length++) expect(recordOfRow(row.slice(0, length))).toBeUndefined()
  })

  it.each([
    ['null'],
    ['[]'],
    ['7'],
    ['{}'],
    [JSON.stringify({ ...usageRecord(), kind: 'other' })],
    [JSON.stringify({ ...usageRecord(), units: { stars: 3 } })],
    [JSON.stringify({ ...usageRecord(), units: null })],
    [JSON.stringify({ ...usageRecord(), atMs: '1' })],
    ['\0\0\0\0'],
  ])('that is none is told apart: %s', (line) => {
    expect(recordOfRow(line)).toBeUndefined()
  })
})

describe('The lines of a file', () => {
  const linesIn = async (bytes: string): Promise<string[]> => {
    const place = await diskBufferFolder()
    try {
      const file = join(place, 'lines')
      await writeFile(file, bytes)
      const lines: string[] = []
      for await (const line of linesOf(file)) lines.push(line)
      return lines
    } finally {
      await rm(place, { recursive: true })
    }
  }

  it('come one by one, the last one also without its end', async () => {
    expect(await linesIn('one\n\ntwo\nth')).toEqual(['one', '', 'two', 'th'])
    const long = 'é'.repeat(100_000)
    expect(await linesIn(`${long}\n${long}`)).toEqual([long, long])
  })

  it('are never as long as a damaged file', async () => {
    const lines = await linesIn(`${'x'.repeat(5_000_000)}\nlast\n`)
    expect(lines.at(-2)).toBe('last')
    expect(lines[0]?.length).toBeLessThan(1_200_000)
  })

  it('fail with what the file system says', async () => {
    await expect(linesOf('/no/such/file').next()).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('What has no room in the queue while the store is away', () => {
  const QUEUE_ROWS = 50
  const USAGE = { queueRows: QUEUE_ROWS, batchRows: 10, batchMs: 1 }

  let lab: UsageWriterLab

  async function begin(usage: object = {}, bufferBytes?: number): Promise<void> {
    await lab.close()
    lab = await usageWriterLab({ ...USAGE, ...usage }, bufferBytes)
    lab.store.before = away
  }

  beforeEach(async () => {
    lab = await usageWriterLab(USAGE)
    lab.store.before = away
  })
  afterEach(() => lab.close())

  const logged = (text: string): number => lab.lines.filter(({ msg }) => msg === text).length

  /** Also during a write. */
  const wholeRows = async (): Promise<string[]> =>
    (await diskBufferFiles(lab.folder.path)).flatMap((text) =>
      text.split('\n').flatMap((line) => recordOfRow(line)?.id ?? []),
    )

  /** As requests arrive: a few at a time. */
  async function use(many: readonly UsageRecord[], atOnce = 7): Promise<void> {
    for (let at = 0; at < many.length; at += atOnce) {
      lab.writer.add(many.slice(at, at + atOnce))
      if (at % 100 < atOnce) await nextTurn()
    }
  }

  const files = (): Promise<string[]> => readdir(lab.folder.path)

  /** Whether all is on the disk but the queue, and the batch that is being stored. */
  const inFiles = async (): Promise<boolean> => (await lab.metric('gateway_usage_queue_rows')) === QUEUE_ROWS + 10

  const isStored = (many: readonly UsageRecord[]) => (): boolean => lab.store.rows.size === many.length

  it('waits in files, and is stored by the running process when the store answers again, each row once', async () => {
    const many = records(2000)
    await use(many)
    await eventually(inFiles)
    expect(await lab.buffered()).toHaveLength(2000 - QUEUE_ROWS - 10)
    lab.store.before = () => undefined
    await eventually(isStored(many))
    await eventually(async () => (await files()).length === 0)
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
    expect(lab.store.batches.flat().length).toBeLessThan(2000 + 100)
    expect([lab.logged(), await lab.metric('gateway_usage_dropped_total')]).toEqual([[], 0])
    expect([
      logged('usage waits in files: the queue is full'),
      logged('usage is stored that had no room in the queue'),
    ]).toEqual([1, 1])
  })

  it('is stored each time the store comes back', async () => {
    for (const stored of [300, 600]) {
      lab.store.before = away
      await use(records(300))
      await eventually(inFiles)
      lab.store.before = () => undefined
      await eventually(async () => lab.store.rows.size === stored && (await files()).length === 0)
    }
    expect(lab.logged()).toEqual([])
    expect(logged('usage waits in files: the queue is full')).toBe(2)
  })

  it('is in the log, row by row, and counted, where no file can be written, which is said once', async () => {
    await writeFile(lab.folder.path, 'a file where the folder should be')
    const many = records(500)
    await use(many)
    await eventually(() => lab.logged().length === 500 - QUEUE_ROWS - 10)
    expect(await lab.metric('gateway_usage_dropped_total')).toBe(500 - QUEUE_ROWS - 10)
    lab.store.before = () => undefined
    await eventually(() => lab.store.rows.size === QUEUE_ROWS + 10)
    expect([...lab.written(), ...lab.logged()].sort()).toEqual(idsOf(many).sort())
    expect(logged('usage that does not fit into the queue finds no room in a file')).toBe(1)
    await rm(lab.folder.path)
  })

  it('is in the log without a file being made, where there is no room for one row, and each outage says why', async () => {
    await begin({}, 0)
    for (const [outage, stored] of [QUEUE_ROWS + 10, 2 * (QUEUE_ROWS + 10)].entries()) {
      lab.store.before = away
      await use(records(300))
      await eventually(() => lab.logged().length === (outage + 1) * (300 - QUEUE_ROWS - 10))
      expect(await files()).toEqual([])
      lab.store.before = () => undefined
      await eventually(() => lab.store.rows.size === stored)
    }
    expect(logged('usage that does not fit into the queue finds no room in a file')).toBe(2)
    expect(logged('usage is stored that had no room in the queue')).toBe(0)
  })

  it('takes no more of the disk than all files may, and the rest is in the log', async () => {
    const many = records(500)
    // Of those that overflow: the first ten are being stored.
    const bytes = many.slice(10, 110).reduce((sum, record) => sum + Buffer.byteLength(bufferedRow(record)), 0)
    await begin({}, bytes)
    await use(many)
    await eventually(() => lab.logged().length === 500 - QUEUE_ROWS - 10 - 100)
    expect(await lab.buffered()).toHaveLength(100)
    lab.store.before = () => undefined
    await eventually(() => lab.store.rows.size === QUEUE_ROWS + 10 + 100)
    expect([...lab.written(), ...lab.logged()].sort()).toEqual(idsOf(many).sort())
    // There is room again.
    await eventually(async () => (await files()).length === 0)
  })

  it('is in files at the end, all of it, also what is just being written', async () => {
    const many = records(5000)
    lab.writer.add(many)
    await nextTurn()
    lab.writer.persistRemaining()
    // Rows that are being written may be duplicated.
    await eventually(async () => new Set(await wholeRows()).size === 5000)
    expect([...new Set(await wholeRows())].sort()).toEqual(idsOf(many).sort())
    expect([lab.logged(), await lab.metric('gateway_usage_dropped_total')]).toEqual([[], 0])
  })

  it('is in the log or in a file, never in both, at an end that comes while the log is told of it', async () => {
    await writeFile(lab.folder.path, 'a file where the folder should be')
    const many = records(4000)
    await use(many, 1000)
    while (lab.logged().length === 0) await nextTurn()
    await rm(lab.folder.path)
    lab.writer.persistRemaining()
    const kept = await lab.buffered()
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(kept.length).toBeGreaterThan(1000)
    expect([...kept, ...lab.logged()].sort()).toEqual(idsOf(many).sort())
    expect(await lab.metric('gateway_usage_dropped_total')).toBe(lab.logged().length)
  })

  it('is kept once, though more comes after the end than the queue takes', async () => {
    const [first, late] = [records(200), records(200)]
    lab.writer.add(first)
    lab.writer.persistRemaining()
    lab.writer.add(late)
    lab.writer.persistRemaining()
    expect((await lab.buffered()).toSorted()).toEqual(idsOf([...first, ...late]).sort())
  })

  it('is written by an end to which the store is back, as far as it is in no file', async () => {
    await begin({ batchRows: 1000, batchMs: 60_000 })
    const many = records(500)
    lab.writer.add(many)
    lab.store.before = () => undefined
    await lab.writer.stop()
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
    expect(await lab.buffered()).toEqual([])
  })

  it('waits in files as well, all of it, when a reload has made the queue much smaller', async () => {
    await begin({ queueRows: 15_000 })
    const many = records(15_010)
    lab.writer.add(many.slice(0, -20))
    await lab.reload({ ...USAGE, queueRows: QUEUE_ROWS })
    for (const [index, record] of many.slice(-20).entries()) {
      lab.writer.add([record])
      const left = Math.max(QUEUE_ROWS + 10, 15_010 - 1000 * (index + 1))
      await eventually(async () => (await lab.metric('gateway_usage_queue_rows')) <= left)
    }
    expect(await lab.buffered()).toHaveLength(15_010 - QUEUE_ROWS - 10)
    expect(lab.logged()).toEqual([])
  })

  it('takes no more memory than ten thousand rows do, however slow the disk is', async () => {
    const many = records(30_000)
    // In one turn: nothing can be written meanwhile. A batch is being stored.
    for (let at = 0; at < many.length; at += 100) lab.writer.add(many.slice(at, at + 100))
    expect(await lab.metric('gateway_usage_queue_rows')).toBeLessThanOrEqual(10_000 + QUEUE_ROWS + 10)
    const waiting = [...many.slice(0, QUEUE_ROWS), ...many.slice(QUEUE_ROWS + 10)]
    expect(lab.logged()).toEqual(idsOf(waiting.slice(0, -10_000 - QUEUE_ROWS)))
  })
})

describe('What an earlier process could not store', () => {
  let lab: UsageWriterLab
  let recovery: DiskBufferRecovery

  async function begin(usage: object = {}): Promise<void> {
    await lab.close()
    lab = await usageWriterLab(usage)
    recovery = recoveryOf(lab)
  }

  function recoveryOf({ store, database, config, folder, lost, logger }: UsageWriterLab): DiskBufferRecovery {
    const made = new DiskBufferRecovery(store, database, config, folder, lost, logger)
    made.onModuleInit()
    return made
  }

  async function end(): Promise<void> {
    recovery.onModuleDestroy()
    await recovery.beforeApplicationShutdown()
  }

  beforeEach(async () => {
    lab = await usageWriterLab({ batchRows: 100 })
    recovery = recoveryOf(lab)
  })
  afterEach(async () => {
    await end()
    await lab.close()
  })

  const files = (): Promise<string[]> => readdir(lab.folder.path)
  const logged = (): unknown[] => lab.lines.map(({ msg }) => msg)

  it('is stored by the next one, in batches, and its file is gone', async () => {
    const many = records(1234)
    lab.folder.append(many.map(bufferedRow))
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect(lab.written()).toEqual(idsOf(many))
    expect(Math.max(...lab.store.batches.map(({ length }) => length))).toBe(100)
    expect([...lab.store.rows.values()]).toEqual(many)
    expect(logged()).toEqual(['usage is stored that an earlier process could not store any more'])
  })

  it('is stored once, although the store has some of it, or two processes read it', async () => {
    const many = records(250)
    lab.folder.append(many.map(bufferedRow))
    await lab.store.insert(many.slice(0, 30))
    const other = recoveryOf(lab)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    await other.beforeApplicationShutdown()
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
  })

  it('is stored by the process that comes first where several read many files, and none takes that for a fault', async () => {
    const many = records(5)
    const late = many.slice(4).map(bufferedRow).join('')
    for (const record of many.slice(0, 4)) new DiskBuffer(lab.folder.path).append([bufferedRow(record)])
    let goOn = (): void => undefined
    let begin = (): void => undefined
    const isHeld = new Promise<void>((resolve) => (goOn = resolve))
    const mayBegin = new Promise<void>((resolve) => (begin = resolve))
    // The first of two readers is paused in its first file until the other one has stored and removed all of them.
    let batches = 0
    lab.store.before = () => (batches++ === 0 ? isHeld : mayBegin)
    const other = recoveryOf(lab)
    await lab.database.open()
    const taken = await files()
    begin()
    await eventually(async () => (await files()).length === 0)
    expect(taken).toHaveLength(4)
    // Only the first reader gets the last file: it skips those that are gone.
    await writeFile(join(lab.folder.path, taken.sort().at(-1) ?? ''), late)
    goOn()
    await Promise.all([recovery.beforeApplicationShutdown(), other.beforeApplicationShutdown()])
    expect([lab.written().sort(), await files()]).toEqual([idsOf(many).sort(), []])
    expect(new Set(logged())).toEqual(new Set(['usage is stored that an earlier process could not store any more']))
  })

  it('lacks the lines that were damaged, of which one speaks', async () => {
    const many = records(3)
    const [one = '', two = '', three = ''] = many.map(bufferedRow)
    lab.folder.append([one])
    await writeFile(join(lab.folder.path, '1-killed.rows'), `${two.slice(0, 40)}\n${three}${two.slice(0, 77)}`)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect(lab.written().sort()).toEqual(idsOf([many[0], many[2]].filter((each) => each !== undefined)))
    expect(lab.lines.find(({ lines }) => lines === 2)?.['msg']).toBe('lines of kept usage cannot be read: left out')
  })

  it('stays in its file until all of it is stored', async () => {
    const many = records(250)
    lab.folder.append(many.map(bufferedRow))
    lab.store.before = () => (lab.store.batches.length > 2 ? away() : undefined)
    await lab.database.open()
    await eventually(() => lab.store.batches.length === 3)
    await end()
    expect(await files()).toHaveLength(1)
    // The next start.
    lab.store.before = () => undefined
    const second = recoveryOf(lab)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    await second.beforeApplicationShutdown()
    expect(lab.written()).toEqual(idsOf(many))
  })

  it('waits in its file while the store is away', async () => {
    const many = records(3)
    lab.folder.append(many.map(bufferedRow))
    lab.store.before = () => (lab.store.batches.length < 2 ? away() : undefined)
    await lab.database.open()
    await eventually(() => lab.store.batches.length === 1)
    expect(await files()).toHaveLength(1)
    await eventually(async () => (await files()).length === 0)
    expect(lab.written()).toEqual(idsOf(many))
  })

  it('keeps its file while another process is still writing into it', async () => {
    const [first, second] = records(2)
    lab.folder.append([first].filter((each) => each !== undefined).map(bufferedRow))
    lab.store.before = async () => {
      if (lab.store.batches.length > 1) return
      // Its name is free by now: the writer creates another file.
      lab.folder.append([second].filter((each) => each !== undefined).map(bufferedRow))
      await Promise.resolve()
    }
    await lab.database.open()
    await eventually(() => lab.store.rows.size === 1)
    await eventually(async () => (await diskBufferFiles(lab.folder.path)).length === 1)
    const next = recoveryOf(lab)
    await lab.database.open()
    await eventually(() => lab.store.rows.size === 2)
    await next.beforeApplicationShutdown()
  })

  it('loses a row that no store takes to the log, and no other', async () => {
    const many = records(10)
    lab.folder.append(many.map(bufferedRow))
    const bad = many[4]?.id ?? ''
    lab.store.before = (batch) =>
      idsOf(batch).includes(bad) ? Object.assign(new Error('said the server'), { code: '22003' }) : undefined
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect([lab.written().length, lab.logged()]).toEqual([9, [bad]])
    expect(await lab.metric('gateway_usage_dropped_total')).toBe(1)
  })

  it('stays where it is where usage is not to be stored', async () => {
    await begin({ store: false })
    lab.folder.append(records(2).map(bufferedRow))
    await lab.database.open()
    await end()
    expect([await files(), lab.store.batches]).toEqual([[expect.stringMatching(/\.rows$/)], []])
  })

  it('stays where it is when it cannot be read, which is said, and keeps no process from starting', async () => {
    await rm(lab.folder.path, { recursive: true, force: true })
    await appendFile(lab.folder.path, 'no folder')
    await lab.database.open()
    await eventually(() => logged().includes('usage that waits in files cannot be read'))
  })
})
