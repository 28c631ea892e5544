import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { isAlive, markdownOf, ParserPoolLab, processOf } from '../../test/support/parser-pools.js'
import { Departure } from '../core/departure.js'

const lab = new ParserPoolLab()
const { start } = lab

afterEach(() => lab.close())

describe('A process that is ended from outside', () => {
  /** Names of the processes that were given a document which says where to leave them. */
  async function givenTo(document: string): Promise<{ readonly kind: unknown; readonly processes: number }> {
    const directory = await mkdtemp(join(tmpdir(), 'engines-'))
    const error: unknown = await lab.pool.parse(document + directory).catch((thrown: unknown) => thrown)
    const processes = await readdir(directory)
    await rm(directory, { recursive: true })
    return { kind: (error as { kind?: unknown }).kind, processes: processes.length }
  }

  it.each([1, 2])('before it began costs the document nothing: another one of %i reads it', async (processes) => {
    start({ processes })
    const before = processOf(await lab.pool.parse('echo:before'))
    process.kill(before, 'SIGSTOP')
    const departure = new Departure()
    const parsing = lab.pool.parse('echo:kept', {
      departure,
      onBegun: () => {
        setImmediate(() => process.kill(before, 'SIGKILL'))
      },
    })
    const document = await parsing
    expect(markdownOf(document)).toBe('kept')
    expect(processOf(document)).not.toBe(before)
  })

  it('a moment before it is given a document, which nobody knows yet, costs that document nothing', async () => {
    start()
    const before = processOf(await lab.pool.parse('echo:before'))
    process.kill(before, 'SIGKILL')
    expect(markdownOf(await lab.pool.parse('echo:kept'))).toBe('kept')
  })

  it('is replaced for a document once, and what ends the next one as well is a fault of the gateway', async () => {
    start()
    expect(await givenTo('vanish:')).toEqual({ kind: 'internal', processes: 2 })
    expect(markdownOf(await lab.pool.parse('echo:next'))).toBe('next')
  })

  it('while it reads ends the document, which is given to nobody else', async () => {
    start()
    expect(await givenTo('die:')).toEqual({ kind: 'unprocessable', processes: 1 })
  })
})

describe('Time', () => {
  it('ends a document that keeps its process busy beyond the limit of the configuration', async () => {
    start({ parseMs: 200 })
    const before = processOf(await lab.pool.parse('echo:before'))
    await expect(lab.pool.parse('hang')).rejects.toMatchObject({ kind: 'upstream_timeout' })
    expect(isAlive(before)).toBe(false)
    expect(markdownOf(await lab.pool.parse('echo:after'))).toBe('after')
  })

  it("ends it earlier when that is the caller's wish", async () => {
    start({ parseMs: 60_000 })
    await lab.pool.parse('echo:warm')
    await expect(lab.pool.parse('hang', { timeoutMs: 150 })).rejects.toMatchObject({ kind: 'upstream_timeout' })
  })

  it('ends a wait in the line, and whoever stood behind moves up', async () => {
    start()
    await lab.pool.parse('echo:warm')
    const departure = new Departure()
    const holder = lab.pool.parse('wait', { departure })
    const late = lab.pool.parse('echo:late', { timeoutMs: 100 })
    const patient = lab.pool.parse('echo:patient')
    await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout' })
    departure.announce()
    await expect(holder).rejects.toMatchObject({ kind: 'caller_left' })
    expect(markdownOf(await patient)).toBe('patient')
  })
})

describe('A caller who leaves', () => {
  /** Resolves once the pool has the document. */
  const begun = (document: string, departure: Departure): Promise<{ readonly outcome: Promise<unknown> }> =>
    new Promise((resolve) => {
      const outcome = lab.pool.parse(document, {
        departure,
        onBegun: () => {
          setImmediate(() => {
            resolve({ outcome })
          })
        },
      })
    })

  it('gets nothing read any more: the process is gone within a second, and the next caller has another', async () => {
    start()
    const before = processOf(await lab.pool.parse('echo:before'))
    const departure = new Departure()
    const parsing = await begun('hang', departure)
    const next = lab.pool.parse('echo:next')
    const leftAtMs = performance.now()
    departure.announce()
    await expect(parsing.outcome).rejects.toMatchObject({ kind: 'caller_left' })
    // A second is promised; the machine that runs all the tests may be late to look.
    expect(performance.now() - leftAtMs).toBeLessThan(2000)
    expect(isAlive(before)).toBe(false)
    expect(markdownOf(await next)).toBe('next')
  })

  it('does not cost a process whose work is nearly done', async () => {
    start()
    const before = processOf(await lab.pool.parse('echo:before'))
    const departure = new Departure()
    const parsing = await begun('pause:50', departure)
    departure.announce()
    await parsing.outcome.catch(() => undefined)
    expect(processOf(await lab.pool.parse('echo:after'))).toBe(before)
  })

  it('loses the place in the line at once, and never reaches a process', async () => {
    start({ queue: 1 })
    await lab.pool.parse('echo:warm')
    const holder = new Departure()
    const held = lab.pool.parse('wait', { departure: holder })
    const departure = new Departure()
    const leaver = lab.pool.parse('leave:1', { departure })
    await expect(lab.pool.parse('echo:third')).rejects.toMatchObject({ kind: 'overloaded' })
    departure.announce()
    await expect(leaver).rejects.toMatchObject({ kind: 'caller_left' })
    const third = lab.pool.parse('echo:third')
    holder.announce()
    await expect(held).rejects.toMatchObject({ kind: 'caller_left' })
    expect(markdownOf(await third)).toBe('third')
  })

  it('has left before anything began', async () => {
    start()
    const departure = new Departure()
    departure.announce()
    await expect(lab.pool.parse('echo:1', { departure })).rejects.toMatchObject({ kind: 'caller_left' })
  })
})
