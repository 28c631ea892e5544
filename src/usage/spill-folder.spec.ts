import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spillFiles, spillPlace } from '../../test/support/usage-writer-lab.js'
import { SpillFolder } from './disk-buffer.js'

let place: string
let path: string
let folder: SpillFolder

beforeEach(async () => {
  place = await spillPlace()
  path = join(place, 'data', 'rows')
  folder = new SpillFolder(path)
})
afterEach(() => rm(place, { recursive: true }))

const rows = (count: number): string[] => Array.from({ length: count }, (_, index) => `row ${index}\n`)

describe('Rows that could not be stored', () => {
  it('are in one file of the process, which nobody else can read, and those that come later behind them', async () => {
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
    new SpillFolder(path).append(['two\n'])
    expect(await spillFiles(path)).toHaveLength(2)
  })

  it('find room as far as there is any, files of others included', () => {
    new SpillFolder(path).append(['0123456789\n'])
    const small = new SpillFolder(path, 32)
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

describe('Whoever starts next', () => {
  it('takes all files, the oldest first, and they are there until it removes them', async () => {
    await mkdir(path, { recursive: true })
    for (const name of ['2-b.rows', '1-a.rows', '0-dead.taken']) await writeFile(join(path, name), '')
    await writeFile(join(path, 'notes.txt'), '')
    const taken = ['0-dead', '1-a', '2-b'].map((name) => join(path, `${name}.taken`))
    expect(folder.take()).toEqual(taken)
    expect(new SpillFolder(path).take()).toEqual(taken)
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
    const [file = ''] = new SpillFolder(path).take()
    // Between the look at the file and its removal.
    folder.append(['written meanwhile\n'])
    folder.remove(file)
    expect((await spillFiles(path)).join('')).toContain('written meanwhile')
  })

  it('takes what comes later under another name, also while the file before is still being read', async () => {
    folder.append(['first\n'])
    const [first = ''] = new SpillFolder(path).take()
    folder.append(['second\n'])
    expect(new SpillFolder(path).take()).toHaveLength(2)
    expect(await readFile(first, 'utf8')).toBe('first\n')
  })

  it('may take a file in the very moment something is written into it: then that is in another one, too', async () => {
    folder.append(['first\n'])
    const [name = ''] = await readdir(path)
    const row = ['row\n']
    // Asked for once the file is open.
    const slice = (from?: number, to?: number): string[] => {
      if (existsSync(join(path, name))) new SpillFolder(path).take()
      return row.slice(from, to)
    }
    expect(folder.append(Object.assign([...row], { slice }))).toBe(1)
    const names = (await readdir(path)).sort()
    expect(names.map((each) => each.slice(each.lastIndexOf('.')))).toEqual(['.taken', '.rows'])
    expect(await readFile(join(path, names[1] ?? ''), 'utf8')).toBe('row\n')
  })
})
