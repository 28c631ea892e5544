import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '../../src/sandbox/p1/p1.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator.js'
import { type Cluster, CLUSTER_START_MS, DRAIN_DELAY_MS, startCluster } from './cluster.js'
import { openStream, type RunningStream } from './running-stream.js'
import { lost, SteadyLoad } from './steady-load.js'

const GRACE_MS = 4_000
const PACE_MS = 20
/** A stream of these is over before the grace is, yet long enough to meet the drain. */
const SHORT_CHUNKS = 150
const ENDLESS_CHUNKS = 1_000_000
const REQUESTS_PER_SECOND = 25

let simulator: Simulator
let cluster: Cluster
beforeAll(async () => {
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key', paceMs: PACE_MS })
  cluster = await startCluster({
    channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
    sections: { timeouts: { shutdownGraceMs: GRACE_MS } },
  })
}, CLUSTER_START_MS)
afterAll(async () => {
  await cluster.close()
  await simulator.close()
})

const openAll = (count: number, chunks: number): Promise<RunningStream[]> =>
  Promise.all(Array.from({ length: count }, () => openStream(cluster.url, chunks)))

/** When each was over; of those that were cut. */
function cutsOf(streams: readonly RunningStream[]): number[] {
  const cuts: number[] = []
  for (const { text } of streams) void text.then(() => cuts.push(performance.now()))
  return cuts
}

/** One replica as an operator restarts it: nobody tells the balancer. Resolves with how long it took to end. */
async function restart(number: number): Promise<number> {
  const replica = cluster.replicas[number - 1]
  const startedAtMs = performance.now()
  const stopped = replica?.stop()
  await cluster.balancer.shows(number, false)
  // It has been noticed before the socket closed, or requests could have gone there.
  expect(performance.now() - startedAtMs).toBeLessThan(DRAIN_DELAY_MS)
  expect(await stopped).toMatchObject({ code: 0, signal: null, errors: '' })
  const tookMs = performance.now() - startedAtMs
  await replica?.start()
  await cluster.balancer.shows(number, true)
  return tookMs
}

describe('a rolling restart under load', () => {
  it('loses no request, lets streams end within the grace, and cuts the others after it', async () => {
    const load = new SteadyLoad(cluster.url, REQUESTS_PER_SECOND)
    for (const number of [1, 2]) {
      const short = await openAll(4, SHORT_CHUNKS)
      const endless = await openAll(4, ENDLESS_CHUNKS)
      const cuts = cutsOf(endless)
      const stoppedAtMs = performance.now()
      const tookMs = await restart(number)
      for (const { text } of short) expect(await text).toContain('data: [DONE]')
      // The balancer gives to whoever has least to do: about half of them ran there.
      expect(cuts.length).toBeGreaterThan(0)
      expect(cuts.length).toBeLessThan(endless.length)
      for (const cutAtMs of cuts) expect(cutAtMs - stoppedAtMs).toBeGreaterThanOrEqual(DRAIN_DELAY_MS + GRACE_MS - 100)
      expect(tookMs).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS + 10_000)
      for (const { response } of endless) response.destroy()
    }
    const outcomes = await load.end()
    expect(lost(outcomes)).toEqual([])
    expect(outcomes.length).toBeGreaterThan(200)
  })

  it('leaves no request under way at the upstream whose caller has gone through the balancer', async () => {
    const { response, text } = await openStream(cluster.url, ENDLESS_CHUNKS)
    const aborted = simulator.nextAbort()
    response.destroy()
    await aborted
    expect(await text).not.toContain('[DONE]')
  })
})
