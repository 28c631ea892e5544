import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import {
  childrenOf,
  DOCUMENTS,
  FAKE_ENGINE,
  isAlive,
  isOnRecord,
  markdownOf,
  MEBIBYTE,
  ParserPoolLab,
  processOf,
} from '../../test/support/parser-pools.js'
import { Departure } from '../core/departure.js'

const lab = new ParserPoolLab()
const { start } = lab

afterEach(() => lab.close())

/** The processes of as many documents as have to be read at the same time. */
async function meeting(count: number): Promise<number[]> {
  const directory = await mkdtemp(join(tmpdir(), 'engines-'))
  const documents = Array.from({ length: count }, () => lab.pool.parse(`meet:${count},${directory}`))
  try {
    return (await Promise.all(documents)).map(processOf)
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** So many documents that stay until everybody leaves. */
function hold(count: number): { readonly release: () => Promise<unknown> } {
  const departure = new Departure()
  const held = Array.from({ length: count }, () => lab.pool.parse('wait', { departure }))
  const settled = Promise.allSettled(held)
  return {
    release: () => {
      departure.announce()
      return settled
    },
  }
}

describe('Many documents at once', () => {
  it('are read in as many processes as the configuration grants, and no more', async () => {
    start({ processes: 2 })
    const processes = await meeting(2)
    expect(new Set(processes).size).toBe(2)
    const documents = await Promise.all(Array.from({ length: 6 }, () => lab.pool.parse('pause:20')))
    for (const document of documents) expect(processes).toContain(processOf(document))
  })

  it('wait in a line of bounded length; beyond it callers hear at once when to come again', async () => {
    start({ processes: 1, queue: 2 })
    const held = hold(3)
    await expect(lab.pool.parse('echo:4')).rejects.toMatchObject({
      kind: 'overloaded',
      details: { retryAfterSeconds: 1 },
    })
    await held.release()
    expect(markdownOf(await lab.pool.parse('echo:5'))).toBe('5')
  })

  it('may have no line at all', async () => {
    start({ processes: 1, queue: 0 })
    const held = hold(1)
    await expect(lab.pool.parse('echo:2')).rejects.toMatchObject({ kind: 'overloaded' })
    await held.release()
  })

  it('are served in the order in which they came', async () => {
    start({ processes: 1, queue: 10 })
    const order: string[] = []
    const names = ['a', 'b', 'c', 'd']
    await Promise.all(
      names.map((name) => lab.pool.parse(`echo:${name}`).then((document) => order.push(markdownOf(document)))),
    )
    expect(order).toEqual(names)
  })
})

describe('A process', () => {
  it('is not there before the first document', async () => {
    start()
    expect(childrenOf(process.pid)).toEqual([])
    const first = processOf(await lab.pool.parse('echo:1'))
    expect(childrenOf(process.pid)).toEqual([first])
  })

  it('that has grown large is replaced, and nobody notices', async () => {
    start()
    const swollen = processOf(await lab.pool.parse('swell'))
    const [second, third] = await Promise.all([lab.pool.parse('echo:2'), lab.pool.parse('echo:3')])
    expect([markdownOf(second), markdownOf(third)]).toEqual(['2', '3'])
    expect(processOf(second)).not.toBe(swollen)
    await eventually(() => !isAlive(swollen))
  })

  it('is replaced after two hundred documents, and nobody notices', async () => {
    start({ queue: 300 })
    const documents = await Promise.all(Array.from({ length: 201 }, (_, index) => lab.pool.parse(`echo:${index}`)))
    expect(documents.map(markdownOf)).toEqual(documents.map((_, index) => String(index)))
    const processes = documents.map(processOf)
    expect(new Set(processes.slice(0, 200)).size).toBe(1)
    expect(processes[200]).not.toBe(processes[0])
  })

  it('that dies with nothing to do is replaced before anybody asks', async () => {
    start()
    const first = processOf(await lab.pool.parse('echo:1'))
    process.kill(first, 'SIGKILL')
    await eventually(() => !isOnRecord(first) && childrenOf(process.pid).length === 1)
    const [second] = childrenOf(process.pid)
    expect(processOf(await lab.pool.parse('echo:2'))).toBe(second)
  })
})

describe('A process that dies while it starts', () => {
  it('is 503 for everybody who waits, told once in the log, and not tried again at once', async () => {
    start({ processes: 2, queue: 10 }, {}, '/nowhere/engine.mjs')
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => lab.pool.parse('echo:1')))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { kind: 'overloaded' } })
    }
    const { length } = lab.pool.logText()
    for (let call = 0; call < 100; call += 1) {
      await expect(lab.pool.parse('echo:1')).rejects.toMatchObject({
        kind: 'overloaded',
        details: { retryAfterSeconds: 1 },
      })
    }
    expect(lab.pool.logText()).toHaveLength(length)
    expect(lab.pool.logText()).toContain('Cannot find module')
    expect(lab.pool.logText().trim().split('\n').length).toBeLessThanOrEqual(2)
  })

  it('is tried again after a rest, and then documents are read', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'engine-'))
    const entry = join(directory, 'engine.mjs')
    start({}, {}, entry)
    await expect(lab.pool.parse('echo:1')).rejects.toMatchObject({ kind: 'overloaded' })
    await copyFile(FAKE_ENGINE, entry)
    await eventually(async () => (await lab.pool.parse('echo:2').catch(() => undefined)) !== undefined)
    await rm(directory, { recursive: true })
  })
})

describe('A reload of the configuration', () => {
  const reload = (documents: object): Promise<void> => lab.pool.reload({ documents: { ...DOCUMENTS, ...documents } })

  it('that grants more processes is felt by those who wait', async () => {
    start({ processes: 1 })
    const held = hold(1)
    const waiting = lab.pool.parse('echo:waiting')
    await reload({ processes: 2 })
    expect(markdownOf(await waiting)).toBe('waiting')
    await held.release()
  })

  it('that grants fewer ends the idle ones', async () => {
    start({ processes: 2 })
    const processes = await meeting(2)
    expect(processes.filter(isAlive)).toHaveLength(2)
    await reload({ processes: 1 })
    await eventually(() => processes.filter(isAlive).length === 1)
    const [first, second] = await Promise.all([lab.pool.parse('pause:20'), lab.pool.parse('pause:20')])
    expect(processOf(first)).toBe(processOf(second))
  })

  it('that changes their memory replaces them', async () => {
    start()
    const before = processOf(await lab.pool.parse('echo:1'))
    await reload({ memoryBytes: 600 * MEBIBYTE })
    expect(processOf(await lab.pool.parse('echo:2'))).not.toBe(before)
    await eventually(() => !isAlive(before))
  })
})

describe('The end of the gateway', () => {
  it('ends all processes, the busy ones too, and refuses whoever waits or comes', async () => {
    start({ processes: 2, queue: 1 })
    const processes = await meeting(2)
    const busy = Promise.allSettled([lab.pool.parse('hang'), lab.pool.parse('hang'), lab.pool.parse('echo:waits')])
    await lab.pool.close()
    expect(processes.filter(isAlive)).toEqual([])
    const [first, second, waiting] = await busy
    for (const outcome of [first, second]) expect(outcome).toMatchObject({ status: 'rejected' })
    expect(waiting).toMatchObject({ status: 'rejected', reason: { kind: 'overloaded' } })
    await expect(lab.pool.parse('echo:late')).rejects.toMatchObject({ kind: 'overloaded' })
  })
})
