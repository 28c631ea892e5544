import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { readBackup, splitLines, writeBackup } from './backup-file.js'
import type { Page, RowSource } from './store-copy.js'

/** Characters that some readers take for ends of lines, others of several bytes, and what JSON escapes. */
const ROWS = ['(a\u2028b\u2029c\u0085d)', '("ü 😀\r\f\u000b\u001c\\\\ ""quoted""")', '']

const source = (pages: () => AsyncIterable<Page>): RowSource => ({
  name: 'a test',
  migrations: ['0001-tasks'],
  shapes: { task: ['id'] },
  pages,
  sequences: () => Promise.resolve({}),
})

async function* onePage(): AsyncGenerator<Page> {
  yield await Promise.resolve({ table: 'task', rows: ROWS })
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const read: Item[] = []
  for await (const item of items) read.push(item)
  return read
}

const ignore = (): void => undefined

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gateway-backup-'))
  file = join(folder, 'a.backup')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('a backup file', () => {
  it('can be read where lines end at U+2028 as well', async () => {
    await writeBackup(source(onePage), file, ignore)
    const text = gunzipSync(await readFile(file)).toString()
    expect(text).not.toMatch(/[\u2028\u2029]/)
    expect(text.split('\n')).toHaveLength(4)
    const backup = await readBackup(file, ignore)
    expect(await all(backup.pages())).toEqual([{ table: 'task', rows: ROWS }])
  })

  it('is read although an older version has written such characters as they are', async () => {
    await writeBackup(source(onePage), file, ignore)
    const text = gunzipSync(await readFile(file)).toString()
    await writeFile(file, gzipSync(text.replaceAll('\\u2028', '\u2028').replaceAll('\\u2029', '\u2029')))
    const backup = await readBackup(file, ignore)
    expect(await all(backup.pages())).toEqual([{ table: 'task', rows: ROWS }])
  })

  it('is whole where two are written under one name, and the later one is refused', async () => {
    const race = await Promise.allSettled([1, 2].map(() => writeBackup(source(onePage), file, ignore)))
    expect(race.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(race.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { name: 'StoreUnusable', message: `${file} is there already: a backup is written to a new file.` },
    })
    expect(await readdir(folder)).toEqual(['a.backup'])
    expect(await all((await readBackup(file, ignore)).pages())).toEqual([{ table: 'task', rows: ROWS }])
  })

  it('replaces no file that came under its name while it was written', async () => {
    async function* late(): AsyncGenerator<Page> {
      await writeFile(file, 'precious')
      yield* onePage()
    }
    await expect(writeBackup(source(late), file, ignore)).rejects.toThrow('is there already')
    expect(await readFile(file, 'utf8')).toBe('precious')
    expect(await readdir(folder)).toEqual(['a.backup'])
  })

  it('is written although a killed process has left a part of one', async () => {
    await writeFile(`${file}.part`, 'left behind')
    await writeBackup(source(onePage), file, ignore)
    expect(await all((await readBackup(file, ignore)).pages())).toEqual([{ table: 'task', rows: ROWS }])
    expect(await readFile(`${file}.part`, 'utf8')).toBe('left behind')
  })
})

describe('the lines of a backup', () => {
  const lines = ['{"ü":"😀\u2028\u2029"}', '', 'a\rb', '\u0085 end']
  const bytes = Buffer.from(lines.join('\n'))

  it.each([1, 2, 3, 5, 7, 1000])('are the same in chunks of %i bytes', async (size) => {
    async function* chunks(): AsyncGenerator<Buffer> {
      for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
    }
    expect(await all(splitLines(chunks()))).toEqual(lines)
  })

  it('are given up on where one has no end, without reading on', async () => {
    let read = 0
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        read += 1
        yield await Promise.resolve(Buffer.alloc(1000, 'x'))
      }
    }
    await expect(all(splitLines(endless(), 10_000))).rejects.toThrow('a line has more than 10000 characters')
    expect(read).toBe(11)
  })
})
