import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { NEVER_POLLED } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'
import { lost, SteadyLoad } from './callers.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS, DRAIN_DELAY_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { type LoadUpstreams, startLoadUpstreams } from './load-upstreams.js'
import type { Replica } from './replica.js'
import { openStream, type RunningStream } from './running-stream.js'

const GRACE_MS = 5_000
const PACE_MS = 20
/** A stream of these is over before the grace is, yet long enough to meet the drain. */
const SHORT_CHUNKS = 150
const ENDLESS_CHUNKS = 1_000_000
const REQUESTS_PER_SECOND = 21
/**
 * Every other request takes so long: longer than the drain delay, so that requests of every kind are under way when it ends,
 * and shorter than delay and grace together, so that none is cut.
 */
const SLOW_MS = 3_500
/** Requests whose answers the upstream keeps back until the replica that has them takes no connections any more. */
const HELD = 3

let upstreams: LoadUpstreams
let cluster: ChatCluster
beforeAll(async () => {
  upstreams = await startLoadUpstreams()
  cluster = await startChatCluster({
    paceMs: PACE_MS,
    channel: { models: ['gpt-4o-mini'] },
    channels: upstreams.channels,
    sections: { timeouts: { shutdownGraceMs: GRACE_MS }, tasks: NEVER_POLLED },
  })
}, CLUSTER_START_MS)
afterAll(async () => {
  await cluster.close()
  await upstreams.close()
})

const openAll = (count: number, chunks: number): Promise<RunningStream[]> =>
  Promise.all(Array.from({ length: count }, () => openStream(cluster.url, chunks)))

/** When each was over; of those that were cut. */
function cutsOf(streams: readonly RunningStream[]): number[] {
  const cuts: number[] = []
  for (const { text } of streams) void text.then(() => cuts.push(performance.now()))
  return cuts
}

interface Restart {
  readonly stoppedAtMs: number
  readonly tookMs: number
  /** Requests that the stopped process has answered, by their ids. */
  readonly answered: ReadonlySet<string>
}

/**
 * The upstream keeps back what it answers to messages from now on; resolves when so many more of the load's are under way
 * at this replica. What was before might have its answer already.
 */
async function holdMessagesAt(replica: Replica): Promise<void> {
  upstreams.messagesDoor.hold()
  const before = await replica.inFlight('messages')
  await comesTrue(async () => (await replica.inFlight('messages')) >= before + HELD)
}

/** One replica as an operator restarts it: nobody tells the balancer. */
async function restart(replica: Replica, number: number): Promise<Restart> {
  const stoppedAtMs = performance.now()
  const stopped = replica.stop()
  await cluster.balancer.shows(number, false)
  // It has been noticed before the socket closed, or requests could have gone there.
  expect(performance.now() - stoppedAtMs).toBeLessThan(DRAIN_DELAY_MS)
  await comesTrue(() => replica.refusesConnections())
  upstreams.messagesDoor.release()
  const exit = await stopped
  expect(exit).toMatchObject({ code: 0, signal: null, errors: '' })
  const tookMs = performance.now() - stoppedAtMs
  await replica.start()
  await cluster.balancer.shows(number, true)
  const answered = new Set([...exit.output.matchAll(/"requestId":"(load-\d+)"/g)].map(([, id = '']) => id))
  return { stoppedAtMs, tookMs, answered }
}

/** Until what comes next goes to both: the balancer gives to whoever has least to do, and one has just begun. */
async function isBalanced(): Promise<boolean> {
  const [one, other] = [await cluster.balancer.sessions(1), await cluster.balancer.sessions(2)]
  return Math.abs(one - other) <= 1
}

/** One replica is replaced while short and endless streams run on both. */
async function restartUnderStreams(number: 1 | 2): Promise<Restart> {
  const replica = cluster.replicas[number - 1]
  if (replica === undefined) throw new Error(`there is no replica ${number}`)
  await holdMessagesAt(replica)
  await comesTrue(isBalanced)
  const short = await openAll(4, SHORT_CHUNKS)
  const endless = await openAll(6, ENDLESS_CHUNKS)
  const cuts = cutsOf(endless)
  const done = await restart(replica, number)
  for (const { text } of short) expect(await text).toContain('data: [DONE]')
  // The balancer gives to whoever has least to do: about half of them ran there.
  expect(cuts.length).toBeGreaterThan(0)
  expect(cuts.length).toBeLessThan(endless.length)
  const earliestAtMs = done.stoppedAtMs + DRAIN_DELAY_MS + GRACE_MS - 100
  for (const cutAtMs of cuts) expect(cutAtMs).toBeGreaterThanOrEqual(earliestAtMs)
  expect(done.tookMs).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS + 10_000)
  for (const { response } of endless) response.destroy()
  return done
}

describe('a rolling restart under load', () => {
  it('loses no request of any kind, lets streams end within the grace, and cuts the others after it', async () => {
    const endSlowness = upstreams.slowDown(SLOW_MS)
    const load = new SteadyLoad(cluster.url, REQUESTS_PER_SECOND, upstreams.kinds)
    const restarts = [await restartUnderStreams(1), await restartUnderStreams(2)]
    const outcomes = await load.end()
    expect(upstreams.violations()).toEqual([])
    endSlowness()
    expect(lost(outcomes)).toEqual([])
    for (const { name } of upstreams.kinds)
      expect([name, outcomes.filter(({ kind }) => kind === name).length > 30]).toEqual([name, true])
    for (const { stoppedAtMs, answered } of restarts) {
      const closedAtMs = stoppedAtMs + DRAIN_DELAY_MS
      const met = outcomes.filter((each) => each.sentAtMs < closedAtMs && each.endedAtMs > closedAtMs)
      // Some were under way where nothing new was taken any more, those held for certain, and were answered there.
      expect(met.filter(({ id }) => answered.has(id)).length).toBeGreaterThan(2)
    }
  })

  it('leaves every task that callers were told of, once, and readable at both replicas', async () => {
    const { created, videos } = upstreams
    expect(created.size).toBeGreaterThan(30)
    expect([videos.creates.length, videos.duplicates]).toEqual([created.size, []])
    for (const replica of cluster.replicas) {
      const caller = new VideoCaller(replica)
      for (const [externalId, id] of created) {
        const { status, body } = await caller.read(id)
        expect([status, body.data.task_id, body.data.task_info?.external_task_id]).toEqual([200, id, externalId])
      }
    }
  })

  it('leaves no request under way at the upstream whose caller has gone through the balancer', async () => {
    const { response, text } = await openStream(cluster.url, ENDLESS_CHUNKS)
    const aborted = cluster.simulator.nextAbort()
    response.destroy()
    await aborted
    expect(await text).not.toContain('[DONE]')
  })
})
