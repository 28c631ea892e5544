import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { idsOf, records, spilledIds, spillFiles, spillPlace } from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'
import { SpillFolder } from './disk-buffer.js'
import { OverflowFiles } from './overflow-files.js'
import { spilledRow } from './spilled-row.js'

let place: string
let path: string
let files: OverflowFiles

beforeEach(async () => {
  place = await spillPlace()
  path = join(place, 'data', 'rows')
  files = new OverflowFiles(new SpillFolder(path))
})
afterEach(() => rm(place, { recursive: true }))

const bytesOf = (many: readonly UsageRecord[]): number =>
  many.reduce((sum, record) => sum + Buffer.byteLength(spilledRow(record)), 0)

/** Does that whenever some of the rows are asked for: the file is open by then. */
function whenRead(many: UsageRecord[], act: (asked: number) => void): UsageRecord[] {
  const slice = (from?: number, to?: number): UsageRecord[] => {
    const asked = many.slice(from, to)
    act(asked.length)
    return asked
  }
  return Object.assign([...many], { slice })
}

describe('Rows of a process that goes on', () => {
  it('are in one file, which nobody else can read, until it is released', async () => {
    const many = records(250)
    expect(await files.append(many.slice(0, 120))).toBe(120)
    expect(await files.append(many.slice(120))).toBe(130)
    const [file = '', ...others] = files.release()
    expect([others, await spilledIds(path)]).toEqual([[], idsOf(many)])
    expect([(await stat(file)).mode & 0o777, (await stat(path)).mode & 0o777]).toEqual([0o600, 0o700])
    const late = records(1)
    await files.append(late)
    expect([(await readFile(file, 'utf8')).split('\n')].map(({ length }) => length)).toEqual([251])
    expect(files.release()).toHaveLength(1)
    expect(files.release()).toEqual([])
  })

  it('are in several files when they are many', async () => {
    const many = records(40)
    files = new OverflowFiles(new SpillFolder(path), bytesOf(many.slice(0, 15)))
    for (let at = 0; at < 40; at += 10) await files.append(many.slice(at, at + 10))
    expect((await spillFiles(path)).map((text) => text.split('\n').length - 1)).toEqual([20, 20])
    expect(files.release()).toHaveLength(2)
  })

  it('find room as far as there is any, files of others included', async () => {
    const many = records(120)
    new SpillFolder(path).append(many.slice(0, 30).map(spilledRow))
    const small = new OverflowFiles(new SpillFolder(path, bytesOf(many.slice(0, 100))))
    expect(await small.append(many.slice(30))).toBe(70)
    expect(await small.append(many.slice(100))).toBe(0)
    expect((await spilledIds(path)).toSorted()).toEqual(idsOf(many.slice(0, 100)).sort())
  })

  it('are refused with what the file system says, where nothing can be written', async () => {
    await writeFile(join(place, 'data'), 'a file where the folder should be')
    await expect(files.append(records(1))).rejects.toThrow(/EEXIST|ENOTDIR/)
  })

  it('are not in the file when that was said of any of them', async () => {
    const [first, second] = [records(10), records(200)]
    await files.append(first)
    // As text, one of them cannot be had.
    const broken = [...second.slice(0, 150), { ...second[150], units: 1n } as never]
    await expect(files.append(broken)).rejects.toThrow(TypeError)
    expect(await spilledIds(path)).toEqual(idsOf(first))
    await files.append(second)
    expect(await spilledIds(path)).toEqual(idsOf([...first, ...second]))
  })

  it('are in a new file when somebody has taken the one there was', async () => {
    const [first, second, third] = [records(3), records(3), records(3)]
    const other = new SpillFolder(path)
    await files.append(first)
    const taken = other.take()
    await files.append(second)
    const takenLater = other.take()
    await files.append(third)
    expect(new Set([...taken, ...takenLater]).size).toBe(2)
    expect([...(await spilledIds(path))].sort()).toEqual(idsOf([...first, ...second, ...third]).sort())
  })

  it('may be taken in the very moment they are written: then they are in another file, too', async () => {
    const [first, second] = [records(3), records(120)]
    await files.append(first)
    let taken: readonly string[] | undefined
    const taking = whenRead(second, () => {
      taken ??= new SpillFolder(path).take()
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
      // Whoever is waiting has its turn before more is asked for.
      setImmediate(() => turn++)
    })
    expect(await files.append(many)).toBe(2000)
    expect(Math.max(...asked.map(({ rows }) => rows))).toBeLessThanOrEqual(50)
    const gaps = asked.slice(1).map(({ turn: at }, index) => at - (asked[index]?.turn ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThan(1)
  })
})
