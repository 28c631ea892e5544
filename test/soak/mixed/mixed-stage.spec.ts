import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'
import { childrenOf } from '../../cluster/worker-processes.js'
import { eventually } from '../../support/eventually.js'
import { startStage } from './mixed-stage.js'
import { startSurroundings } from './surroundings.js'

/** For a PostgreSQL of its own. */
const PATIENCE_MS = 60_000

/** Servers that listen in this process. */
const servers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length

/** Its servers and the processes that it has started are those there were before. */
async function expectNothingLeft(work: () => Promise<void>): Promise<void> {
  const before = [servers(), await childrenOf(process.pid)]
  await work()
  expect(await childrenOf(process.pid)).toEqual(before[1])
  // The loop gives a closed one back in one of its next turns.
  await eventually(() => servers() === before[0])
}

it('leaves nothing of a stage behind whose gateway refuses its configuration', async () => {
  await expectNothingLeft(async () => {
    // A limit below 0.
    const started = startStage({ workers: -1000, runMs: 1, sampleMs: 1, seed: 1 })
    await expect(started).rejects.toThrow('the gateway ended (1)')
  })
})

it(
  'leaves nothing of the surroundings behind where Redis does not start',
  async () => {
    const programs = await mkdtemp(join(tmpdir(), 'soak-programs-'))
    const { PATH = '' } = process.env
    process.env.PATH = `${programs}:${PATH}`
    try {
      const redis = join(programs, 'redis-server')
      await writeFile(redis, '#!/bin/sh\necho out of order\nexit 3\n')
      await chmod(redis, 0o755)
      await expectNothingLeft(async () => {
        const started = startSurroundings('postgres')
        await expect(started).rejects.toThrow('redis-server ended with code 3:\nout of order')
      })
    } finally {
      process.env.PATH = PATH
      await rm(programs, { recursive: true, force: true })
    }
  },
  PATIENCE_MS,
)
