import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { idsOf, records, spilledIds, spillPlace } from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'
import { keepNewest, type KeptRows } from './disk-buffer-shutdown.js'
import { SpillFolder } from './disk-buffer.js'
import { OverflowFiles } from './overflow-files.js'
import { spilledRow } from './spilled-row.js'

let place: string
let path: string

beforeEach(async () => {
  place = await spillPlace()
  path = join(place, 'rows')
})
afterEach(() => rm(place, { recursive: true }))

/** As a process does that ends. */
const keep = (many: readonly UsageRecord[], most = 1000, bytes?: number): KeptRows =>
  keepNewest(new SpillFolder(path, bytes).unasked(), many, most)
const names = async (): Promise<string[]> => (await readdir(path)).sort()
const bytesOf = (many: readonly UsageRecord[]): number =>
  many.reduce((sum, record) => sum + Buffer.byteLength(spilledRow(record)), 0)
const at = (record: UsageRecord, atMs: number): UsageRecord => ({ ...record, atMs })

describe('The rows of processes that nobody has asked', () => {
  it('are in one file, the newest of all, whichever process they are of', async () => {
    const [first, second] = [records(6), records(6)]
    // By their times they take turns.
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
    expect(await spilledIds(path)).toEqual(idsOf(turns.slice(4)))
  })

  it('are taken by whoever opens a store, like all others', () => {
    const many = records(3)
    keep(many)
    new SpillFolder(path).append(many.map(spilledRow))
    expect(new SpillFolder(path).take()).toHaveLength(2)
  })

  it('leave the files of a process that goes on as they are, and what a store was asked for', async () => {
    const running = new OverflowFiles(new SpillFolder(path))
    await running.append(records(3))
    new SpillFolder(path).append(records(2).map(spilledRow))
    const others = await names()
    const many = records(4)
    keep(many)
    expect((await names()).filter((name) => !name.includes('unasked'))).toEqual(others)
    await running.append(records(3))
    expect(running.release().map((file) => basename(file))).toEqual([expect.any(String)])
    expect(await spilledIds(path)).toHaveLength(3 + 2 + 4 + 3)
  })

  it('leave to whoever stores them the files that are taken already', async () => {
    const [first, second] = [records(5), records(5)]
    keep(first)
    const [taken = ''] = new SpillFolder(path).take()
    expect(keep(second, 5)).toEqual({ rows: 5, forgotten: 0, lost: [] })
    expect(existsSync(taken)).toBe(true)
    expect([...(await spilledIds(path))].sort()).toEqual(idsOf([...first, ...second]).sort())
  })

  it('are all there when their file is taken in the very moment it is written', async () => {
    const [first, second] = [records(3), records(4)]
    const folder = new SpillFolder(path).unasked()
    let isTaken = false
    const append = folder.append.bind(folder)
    // Another process ends once the file is open: it puts together what it finds, and this one has to notice.
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
    expect([...new Set(await spilledIds(path))].sort()).toEqual(idsOf([...first, ...second]).sort())
  })

  it('stay in their files when there is no room for one of them all, and the others are lost', async () => {
    const [first, second] = [records(4), records(4)]
    keep(first)
    const kept = keep(second, 1000, bytesOf([...first, ...first, ...second.slice(0, 1)]))
    expect(idsOf(kept.lost)).toEqual(idsOf(second.slice(1)))
    expect(new Set(await spilledIds(path))).toEqual(new Set(idsOf([...first, ...second.slice(0, 1)])))
    // Whoever opens a store reads what was left.
    expect(new SpillFolder(path).take()).toHaveLength(2)
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
    await writeFile(join(path, '1-killed.unasked.rows'), `${spilledRow(one)}${spilledRow(two).slice(0, 40)}`)
    const many = records(1)
    expect(keep(many)).toEqual({ rows: 2, forgotten: 0, lost: [] })
    expect(await spilledIds(path)).toEqual(idsOf([one, ...many]))
    expect(await names()).toHaveLength(1)
  })
})
