import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from '@jest/globals'
import { createLogging } from '../common/observability/logger.js'
import { parseConfig } from '../config/config-loader.js'
import { ConfigStore } from '../config/config-store.js'
import { WorkerFleet } from './worker-fleet.js'

const STAND_IN = fileURLToPath(new URL('../../test/support/worker-stand-in.mjs', import.meta.url))
const KILLED = 'a worker did not end in time and is killed'

let fleet: WorkerFleet | undefined
afterEach(() => fleet?.kill())

/** Two workers that listen, and every line of the log as it comes. */
async function startTwo(manner: 'obedient' | 'deaf') {
  const lines: Record<string, unknown>[] = []
  const { logger, sink } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  cluster.setupPrimary({ exec: STAND_IN, args: [manner], execArgv: [] })
  const store = new ConfigStore(parseConfig('{server: {port: 4321}}', {}))
  fleet = new WorkerFleet({ workers: 2, store, logger, sink })
  return { fleet, lines, address: await fleet.start() }
}

describe('a fleet of workers', () => {
  it('hands every worker the configuration with its place', async () => {
    expect((await startTwo('obedient')).address).toBe('http://port-of-4321')
  })

  it('ends well, and has the last words of all in its log', async () => {
    const { fleet, lines } = await startTwo('obedient')
    expect(await fleet.drain('SIGTERM', 20_000)).toBe(true)
    expect(lines.map(({ worker, msg }) => [worker, msg]).sort()).toEqual([
      [1, 'last words'],
      [2, 'last words'],
    ])
  })

  it('kills whoever has not ended in time, says so, and does not call that a good end', async () => {
    const { fleet, lines } = await startTwo('deaf')
    expect(await fleet.drain('SIGTERM', 300)).toBe(false)
    const killed = { level: 50, afterMs: 300, msg: KILLED }
    expect(lines).toMatchObject([
      { ...killed, ofWorker: 1 },
      { ...killed, ofWorker: 2 },
    ])
    expect(Object.values(cluster.workers ?? {})).toEqual([])
  })
})
