import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { lockDirectory } from './data-lock.js'
import { processSpace, processStart } from './process-identity.js'
import { StoreUnusable } from './store-unusable.js'

const LONG_AGO = new Date(Date.now() - 60_000)

let directory: string
let file: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gateway-lock-'))
  file = join(directory, 'OWNER')
})

afterEach(() => rm(directory, { recursive: true }))

/** Leaves an owner behind, as a process that was killed does. */
async function leave(owner: object, lastSign = new Date()): Promise<void> {
  await writeFile(file, JSON.stringify(owner))
  await utimes(file, lastSign, lastSign)
}

/** The number of a process that has ended. */
async function endedProcess(): Promise<number> {
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
  await once(child, 'exit')
  return Number(child.pid)
}

describe('lockDirectory', () => {
  it('refuses a second owner, names the first and says what to do', async () => {
    const lock = await lockDirectory(directory)
    const second = lockDirectory(directory)
    await expect(second).rejects.toThrow(StoreUnusable)
    await expect(second).rejects.toThrow(directory)
    await expect(second).rejects.toThrow(`process ${process.pid}`)
    await expect(second).rejects.toThrow(/GATEWAY_DATA.*DATABASE_URL/)
    await lock.release()
  })

  it('fails at once when the name of its file is taken by something that cannot be read', async () => {
    await mkdir(file)
    await expect(lockDirectory(directory)).rejects.toMatchObject({ code: 'EISDIR' })
  })

  it('leaves nothing behind when it is released', async () => {
    const lock = await lockDirectory(directory)
    await lock.release()
    await lock.release()
    expect(await readdir(directory)).toEqual([])
    await (await lockDirectory(directory)).release()
  })

  it('takes over at once from a process that has died', async () => {
    await leave({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    const lock = await lockDirectory(directory)
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ pid: process.pid })
    expect(await readdir(directory)).toEqual(['OWNER'])
    await lock.release()
  })

  it('is not deceived by another process that has the number of the dead one', async () => {
    await leave({ pid: process.pid, startedAt: 'earlier', space: await processSpace() })
    await (await lockDirectory(directory)).release()
  })

  it('gives the directory of a dead owner to one of ten that ask at once', async () => {
    await leave({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    const attempts = await Promise.allSettled(Array.from({ length: 10 }, () => lockDirectory(directory)))
    const locks = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []))
    expect(locks).toHaveLength(1)
    await locks[0]?.release()
    expect(await readdir(directory)).toEqual([])
  })

  it('gives the directory of a dead owner away although who began to remove that was killed, too', async () => {
    const dead = JSON.stringify({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    await writeFile(file, dead)
    const mark = `${file}.dead-${hash('sha256', dead).slice(0, 16)}`
    await writeFile(mark, '')
    await utimes(mark, LONG_AGO, LONG_AGO)
    await (await lockDirectory(directory)).release()
    expect(await readdir(directory)).toEqual([])
  })

  it('refuses an owner in another container as long as it gives signs of life', async () => {
    await leave({ pid: 1, startedAt: '1', space: 'another container' })
    const signs = setInterval(() => void utimes(file, new Date(), new Date()), 50)
    await expect(lockDirectory(directory)).rejects.toThrow('process 1')
    clearInterval(signs)
  })

  it('takes over from an owner in another container that gave no sign of life for long', async () => {
    await leave({ pid: process.pid, startedAt: await processStart(process.pid), space: 'gone' }, LONG_AGO)
    await (await lockDirectory(directory)).release()
  })

  it('takes over what is no owner at all, once it is old', async () => {
    await writeFile(file, '')
    await utimes(file, LONG_AGO, LONG_AGO)
    await (await lockDirectory(directory)).release()
  })

  it('gives signs of life while it is held', async () => {
    const lock = await lockDirectory(directory)
    await utimes(file, LONG_AGO, LONG_AGO)
    while ((await stat(file)).mtimeMs <= LONG_AGO.getTime()) await new Promise(setImmediate)
    await lock.release()
  })

  it("does not remove another owner's file", async () => {
    const lock = await lockDirectory(directory)
    await leave({ pid: 1, startedAt: '1', space: 'another container' })
    await lock.release()
    expect(await readdir(directory)).toEqual(['OWNER'])
  })
})
