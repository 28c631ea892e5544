import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ProcessSamples } from './mixed/process-samples.js'

const PATIENCE_MS = 300
/** More than the system gives out. */
const NOBODY = 2 ** 30
const NO_PEERS = { local: new Map(), remote: new Map() }

let directory: string
let file: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'process-samples-'))
  file = join(directory, 'resources.json')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const samples = (pid = process.pid): ProcessSamples => new ProcessSamples(pid, file, NO_PEERS, PATIENCE_MS)
const write = (writtenAtMs: number, timers: number): Promise<void> =>
  writeFile(
    file,
    JSON.stringify({ writtenAtMs, counts: { Timeout: timers }, held: { residentBytes: 1, heapBytes: 1 } }),
  )

describe('What a process holds', () => {
  it('is what it has written since', async () => {
    await write(Date.now() - 60_000, 1)
    const holdings = samples().holdings()
    await write(Date.now() + 1000, 2)
    expect((await holdings).timers).toBe(2)
  })

  it('is not known of one that lives and does not write any more', async () => {
    await write(0, 1)
    await expect(samples().holdings()).rejects.toThrow(
      `the process ${process.pid} lives, and has written nothing since 1970-01-01T00:00:00.000Z`,
    )
  })

  it('is not known of one that has never written', async () => {
    await expect(samples().look()).rejects.toThrow('has written nothing at all')
  })

  it('is not known of one that is gone', async () => {
    await write(Date.now() + 1000, 1)
    await expect(samples(NOBODY).holdings()).rejects.toThrow('ENOENT')
  })
})
