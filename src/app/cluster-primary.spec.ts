import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { createLogging } from '../observability/logger.js'
import { mergedMetricsText } from '../observability/metrics.js'
import { WorkerFleet } from './cluster-primary.js'

const STAND_IN = fileURLToPath(new URL('../../test/support/worker-stand-in.mjs', import.meta.url))
const KILLED = 'a worker did not end in time and is killed'

let fleet: WorkerFleet | undefined
afterEach(() => fleet?.end())

/** Two workers that listen, and every line of the log as it comes. */
async function startTwo(manner: 'obedient' | 'orderly' | 'deaf') {
  const lines: Record<string, unknown>[] = []
  const { logger, sink } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  cluster.setupPrimary({ exec: STAND_IN, args: [manner], execArgv: [] })
  const store = new ConfigStore(parseConfig('{server: {port: 4321}}', {}))
  fleet = new WorkerFleet({ workers: 2, store, logger, sink })
  return { fleet, lines, address: await fleet.start() }
}

/** Those that run, by their places. */
function running(): readonly [Worker, Worker] {
  const [first, second] = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
  if (first === undefined || second === undefined) throw new Error('there are no two workers')
  return [first, second]
}

/** What the fleet says that all have counted, and hold. */
async function sums(fleet: WorkerFleet): Promise<readonly (string | undefined)[]> {
  const text = await mergedMetricsText(await fleet.snapshots())
  return [/^counted_total (\d+)$/m, /^held (\d+)$/m].map((pattern) => pattern.exec(text)?.[1])
}

/** Two that have counted 5 and 7, and have told so once. */
async function startCounting() {
  const { fleet } = await startTwo('deaf')
  const [first, second] = running()
  first.send({ order: 'count', by: 5 })
  second.send({ order: 'count', by: 7 })
  expect(await sums(fleet)).toEqual(['12', '12'])
  return { fleet, first, second }
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

  it('lets those that are overdue keep what they have, and waits for it', async () => {
    const { fleet, lines } = await startTwo('orderly')
    expect(await fleet.drain('SIGTERM', 300)).toBe(false)
    expect(lines.map(({ msg }) => msg).sort()).toEqual([KILLED, KILLED, 'kept', 'kept'])
  })

  it('lets all keep what they have when it is to end now, also amid a drain, and has their last words', async () => {
    const { fleet, lines } = await startTwo('orderly')
    const drained = fleet.drain('SIGTERM', 60_000)
    await fleet.end()
    expect(lines.map(({ worker, msg }) => [worker, msg]).sort()).toEqual([
      [1, 'kept'],
      [2, 'kept'],
    ])
    expect(await drained).toBe(false)
  })

  it('ends those that do not listen any more', async () => {
    const { fleet } = await startTwo('deaf')
    await fleet.end()
    expect(Object.keys(cluster.workers ?? {})).toEqual([])
  })

  it('starts nobody once it drains', async () => {
    const { fleet } = await startTwo('obedient')
    expect(await fleet.drain('SIGTERM', 20_000)).toBe(true)
    expect(await fleet.start()).toBeUndefined()
    expect(Object.keys(cluster.workers ?? {})).toEqual([])
  })
})

describe('the metrics of a fleet', () => {
  it('keep what a worker had counted that does not tell in time, and forget what it holds', async () => {
    const { fleet, first, second } = await startCounting()
    first.send({ order: 'count', by: 1 })
    second.send({ order: 'be-silent' })
    expect(await sums(fleet)).toEqual(['13', '6'])
    expect(await sums(fleet)).toEqual(['13', '6'])
  }, 20_000)

  it('count once what a worker told that dies before all others have', async () => {
    const { fleet, first, second } = await startCounting()
    second.send({ order: 'be-silent' })
    const told = once(first, 'message')
    const summed = sums(fleet)
    await told
    const died = once(first, 'exit')
    first.process.kill('SIGKILL')
    await died
    expect((await summed)[0]).toBe('12')
  }, 20_000)

  it('do not wait for a worker that dies in between', async () => {
    const { fleet, first, second } = await startCounting()
    second.send({ order: 'be-silent' })
    const order: string[] = []
    const replaced = once(cluster, 'fork').then(() => order.push('replaced'))
    const firstTold = once(first, 'message')
    const summed = sums(fleet).then((told) => {
      order.push('told')
      return told
    })
    await firstTold
    second.process.kill('SIGKILL')
    expect(await summed).toEqual(['12', '5'])
    await replaced
    // Another worker comes long before the patience with one that is silent is over, but never at once.
    expect(order).toEqual(['told', 'replaced'])
  }, 20_000)
})
