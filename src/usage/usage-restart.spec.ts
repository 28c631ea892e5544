import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away } from '../../test/support/memory-usage.js'
import { usageRecord } from '../../test/support/usage-records.js'
import {
  idsOf,
  records,
  spilledIds,
  spillPlace,
  type UsageWriterLab,
  usageWriterLab,
} from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'

const FORGOTTEN = 'usage is not stored here: the oldest records are forgotten'

let place: string
let path: string
const labs: UsageWriterLab[] = []

beforeEach(async () => {
  place = await spillPlace()
  path = join(place, 'rows')
})
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.close()
  await rm(place, { recursive: true })
})

/** A process on that directory. Nobody has asked for a store unless `usage` does. */
async function start(usage: object = {}): Promise<UsageWriterLab> {
  const lab = await usageWriterLab({ store: undefined, ...usage }, undefined, path)
  lab.recovery.onModuleInit()
  labs.push(lab)
  return lab
}

/** One that has used all of this, and is told to stop. */
async function used(many: readonly UsageRecord[], usage: object = {}): Promise<UsageWriterLab> {
  const lab = await start(usage)
  for (const record of many) lab.writer.add([record])
  await lab.writer.stop()
  return lab
}

const inFiles = async (): Promise<string[]> => [...(await spilledIds(path))]
const files = (): Promise<string[]> => readdir(path).catch(() => [])
const said = ({ lines }: UsageWriterLab, text: string): number => lines.filter(({ msg }) => msg === text).length

/** In the order of their times. */
const later = (count: number, fromMs: number): UsageRecord[] =>
  records(count).map((record, index) => ({ ...record, atMs: fromMs + index }))

describe('What nobody had asked for when its process ended', () => {
  it('waits in its file until somebody asks, who gets all of it at once, each record once', async () => {
    const some = records(4)
    await used(some)
    const next = await start()
    const own = records(2)
    next.writer.add(own)
    next.writer.begin()
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
    lab.writer.keepRest()
    lab.writer.keepRest()
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
    expect([first, second, third].map((lab) => said(lab, FORGOTTEN))).toEqual([0, 1, 1])
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
