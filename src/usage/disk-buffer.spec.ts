import { readdir, rm, writeFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away } from '../../test/support/memory-usage.js'
import { idsOf, records, spillFiles, type UsageWriterLab, usageWriterLab } from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'
import { recordOfRow, spilledRow } from './spilled-row.js'

const QUEUE_ROWS = 50
const USAGE = { queueRows: QUEUE_ROWS, batchRows: 10, batchMs: 1 }

let lab: UsageWriterLab

async function begin(usage: object = {}, spillBytes?: number): Promise<void> {
  await lab.close()
  lab = await usageWriterLab({ ...USAGE, ...usage }, spillBytes)
  lab.store.before = away
}

beforeEach(async () => {
  lab = await usageWriterLab(USAGE)
  lab.store.before = away
})
afterEach(() => lab.close())

const said = (text: string): number => lab.lines.filter(({ msg }) => msg === text).length

/** Also while somebody is writing. */
const wholeRows = async (): Promise<string[]> =>
  (await spillFiles(lab.folder.path)).flatMap((text) => text.split('\n').flatMap((line) => recordOfRow(line)?.id ?? []))

/** As calls come: a few at a time. */
async function use(many: readonly UsageRecord[], atOnce = 7): Promise<void> {
  for (let at = 0; at < many.length; at += atOnce) {
    lab.writer.add(many.slice(at, at + atOnce))
    if (at % 100 < atOnce) await nextTurn()
  }
}

const files = (): Promise<string[]> => readdir(lab.folder.path)

/** Whether all is but what the queue holds, and the batch that is on its way to the store. */
const inFiles = async (): Promise<boolean> => (await lab.metric('gateway_usage_queue_rows')) === QUEUE_ROWS + 10

const isStored = (many: readonly UsageRecord[]) => (): boolean => lab.store.rows.size === many.length

describe('What has no room in the queue while the store is away', () => {
  it('waits in files, and is stored by the running process when the store answers again, each row once', async () => {
    const many = records(2000)
    await use(many)
    await eventually(inFiles)
    expect(await lab.spilled()).toHaveLength(2000 - QUEUE_ROWS - 10)
    lab.store.before = () => undefined
    await eventually(isStored(many))
    await eventually(async () => (await files()).length === 0)
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
    expect(lab.store.batches.flat().length).toBeLessThan(2000 + 100)
    expect([lab.logged(), await lab.metric('gateway_usage_dropped_total')]).toEqual([[], 0])
    expect([
      said('usage waits in files: the queue is full'),
      said('usage is stored that had no room in the queue'),
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
    expect(said('usage waits in files: the queue is full')).toBe(2)
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
    expect(said('usage that does not fit into the queue finds no room in a file')).toBe(1)
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
    expect(said('usage that does not fit into the queue finds no room in a file')).toBe(2)
    expect(said('usage is stored that had no room in the queue')).toBe(0)
  })

  it('takes no more of the disk than all files may, and the rest is in the log', async () => {
    const many = records(500)
    // Of those that overflow: the first ten are on their way to the store.
    const bytes = many.slice(10, 110).reduce((sum, record) => sum + Buffer.byteLength(spilledRow(record)), 0)
    await begin({}, bytes)
    await use(many)
    await eventually(() => lab.logged().length === 500 - QUEUE_ROWS - 10 - 100)
    expect(await lab.spilled()).toHaveLength(100)
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
    lab.writer.keepRest()
    // What is being written may be there twice.
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
    lab.writer.keepRest()
    const kept = await lab.spilled()
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(kept.length).toBeGreaterThan(1000)
    expect([...kept, ...lab.logged()].sort()).toEqual(idsOf(many).sort())
    expect(await lab.metric('gateway_usage_dropped_total')).toBe(lab.logged().length)
  })

  it('is kept once, though more comes after the end than the queue takes', async () => {
    const [first, late] = [records(200), records(200)]
    lab.writer.add(first)
    lab.writer.keepRest()
    lab.writer.add(late)
    lab.writer.keepRest()
    expect((await lab.spilled()).toSorted()).toEqual(idsOf([...first, ...late]).sort())
  })

  it('is written by an end to which the store is back, as far as it is in no file', async () => {
    await begin({ batchRows: 1000, batchMs: 60_000 })
    const many = records(500)
    lab.writer.add(many)
    lab.store.before = () => undefined
    await lab.writer.stop()
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
    expect(await lab.spilled()).toEqual([])
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
    expect(await lab.spilled()).toHaveLength(15_010 - QUEUE_ROWS - 10)
    expect(lab.logged()).toEqual([])
  })

  it('takes no more memory than ten thousand rows do, however slow the disk is', async () => {
    const many = records(30_000)
    // In one turn: nothing can be written meanwhile. A batch is on its way to the store.
    for (let at = 0; at < many.length; at += 100) lab.writer.add(many.slice(at, at + 100))
    expect(await lab.metric('gateway_usage_queue_rows')).toBeLessThanOrEqual(10_000 + QUEUE_ROWS + 10)
    const waiting = [...many.slice(0, QUEUE_ROWS), ...many.slice(QUEUE_ROWS + 10)]
    expect(lab.logged()).toEqual(idsOf(waiting.slice(0, -10_000 - QUEUE_ROWS)))
  })
})
