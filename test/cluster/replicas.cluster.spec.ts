import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { Database } from '../../src/storage/database.js'
import { CALLBACK_SECRET, CallbackReceiver } from '../support/callback-lab.js'
import { CHAT_PATH, chatText, type ErrorBody, sendRaw, startGateway, type TestGateway } from '../support/gateway.js'
import { dataDirectory as newDataDirectory } from '../support/stores.js'
import { NEVER_POLLED, VIDGEN_ACCESS, vidgenChannel } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'
import {
  isWhole,
  type LoadKind,
  type LoadQuestion,
  lost,
  openStream,
  type RunningStream,
  SteadyLoad,
} from './callers.js'
import { type ChatCluster, CLUSTER_START_MS, DRAIN_DELAY_MS, type Replica, startChatCluster } from './cluster.js'
import { comesTrue } from './daemon.js'
import { endedTasks, requestUsage, type TaskUsage, taskUsage } from './debian-postgres.js'
import { chats, type LoadUpstreams, startLoadUpstreams } from './load-kinds.js'

describe('replica killed', () => {
  /** A poll's lease, and the interval at which expired leases are looked for (docs/operations.md). */
  const TAKE_OVER_MS = 150_000

  /** Of the balancer: one interval, one fast interval, and time for a busy machine to look. */
  const NOTICED_MS = 3_000

  let videos: VidgenSimulator
  let receiver: CallbackReceiver
  let cluster: ChatCluster
  let first: Replica
  let second: Replica
  beforeAll(async () => {
    videos = await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' })
    receiver = await CallbackReceiver.start()
    cluster = await startChatCluster({
      paceMs: 20,
      channels: [vidgenChannel('videos', videos)],
      sections: {
        ssrf: { allow: [receiver.host] },
        // Few at a time: both replicas have a part of them in hand.
        tasks: { pollIntervalMs: 500, pollsPerChannel: 2 },
        callbacks: { secret: CALLBACK_SECRET },
        timeouts: { shutdownGraceMs: 2_000 },
      },
    })
    ;[first, second] = cluster.replicas as [Replica, Replica]
  }, CLUSTER_START_MS)
  afterAll(async () => {
    await cluster.close()
    await receiver.close()
    await videos.close()
  })

  /** Tasks created on one replica, with callbacks. */
  const createOn = ({ url }: Replica, name: string, count: number): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        new VideoCaller({ url }).created({ external_task_id: `${name}-${index}`, callback_url: receiver.url() }),
      ),
    )

  describe('kill -9 of one replica', () => {
    it(
      'costs what it had in hand and nothing else: no task, no callback, no usage of the other',
      async () => {
        const tasks = [...(await createOn(first, 'first', 8)), ...(await createOn(second, 'second', 8))]
        const streams = await Promise.all([1, 2, 3, 4].map(() => openStream(cluster.url, 200)))
        // Long enough that some are under way at any time.
        for (let count = 0; count < 900; count++) cluster.simulator.queueFault({ kind: 'delay', ms: 200 })
        const load = new SteadyLoad(cluster.url, 25, [chats()])
        // Straight to the second, so that it is known whose they are.
        const names = Array.from({ length: 40 }, (_, index) => `acknowledged-${String(index).padStart(2, '0')}`)
        const acknowledged = names.map((name) =>
          sendRaw(second.url, { path: CHAT_PATH, headers: { 'x-request-id': name }, body: chatText('Hello') }),
        )
        // The balancer uses the replica with the fewest connections: half of them to each.
        await comesTrue(() => load.waiting >= 4)
        // When it dies, the end of some has just been written down, of others is being written, and of others not known.
        for (const id of tasks.slice(0, 9)) videos.settle(id, 'succeed')
        await comesTrue(async () => (await endedTasks(cluster.databaseUrl)) >= 4)
        const killedAtMs = performance.now()
        await first.kill()
        const deadAtMs = performance.now()
        const [failed = '', ...made] = tasks.slice(9)
        videos.settle(failed, 'failed')
        for (const id of made) videos.settle(id, 'succeed')

        const texts = await Promise.all(streams.map(({ text }) => text))
        const complete = texts.filter((text) => text.includes('[DONE]'))
        // Streams of the killed one are cut visibly, those of the other continue.
        expect([complete.length, streams.filter(({ response }) => !response.complete).length]).toEqual([2, 2])
        await cluster.balancer.shows(1, false)
        expect(performance.now() - killedAtMs).toBeLessThan(NOTICED_MS + 3_000)
        const outcomes = await load.end()
        // The simulator remembers the last thousand: none was asked for twice.
        const asked = cluster.simulator.requests.flatMap(
          ({ body }) => /This is (load-\d+)\./.exec(body.toString())?.[1] ?? [],
        )
        expect([asked.length > 50, asked.length]).toEqual([true, new Set(asked).size])

        await receiver.has(tasks.length)
        const caller = new VideoCaller(cluster)
        for (const id of tasks)
          expect((await caller.read(id)).body.data.task_status).toBe(id === failed ? 'failed' : 'succeed')
        expect([...(await caller.listed())].sort()).toEqual([...tasks].sort())
        expect(new Set(receiver.webhookIds).size).toBe(tasks.length)

        for (const answer of acknowledged) expect((await answer).status).toBe(200)
        const { code, output } = await second.stop()
        expect(code).toBe(0)
        const servedThere = new Set([...output.matchAll(/"requestId":"(load-\d+)"/g)].map(([, id]) => id))
        expect(servedThere.size).toBeGreaterThan(50)
        for (const { id, sentAtMs, endedAtMs, status, text, error } of lost(outcomes)) {
          // Only what was under way at the dead one, and never sent to the other, where it could be paid for twice.
          expect([id, servedThere.has(id)]).toEqual([id, false])
          expect([id, sentAtMs < deadAtMs, endedAtMs > killedAtMs]).toEqual([id, true, true])
          // HAProxy says 502 to the first request of a caller's connection; a later one it leaves without an answer, as
          // HTTP/1.1 has it for requests that may be lost with an idle connection.
          if (error === undefined)
            expect([status, (JSON.parse(text ?? '{}') as ErrorBody).error.code]).toEqual([502, 'gateway_lost'])
        }
        expect(outcomes.length).toBeGreaterThan(50)
        // At 25 a second with 200 ms each, about five are under way, half of them there.
        expect(lost(outcomes).length).toBeGreaterThan(0)
        expect(lost(outcomes).length).toBeLessThan(25)

        expect(await requestUsage(cluster.databaseUrl, 'acknowledged-')).toEqual(names)
        // Of the load as well, which the balancer has dealt out: what the survivor answered is written down, each once.
        const answeredThere = outcomes.filter(({ id, isWhole }) => isWhole === true && servedThere.has(id))
        expect(answeredThere.length).toBeGreaterThan(50)
        const rows = await requestUsage(cluster.databaseUrl, 'load-')
        expect(rows.filter((id) => servedThere.has(id))).toEqual(answeredThere.map(({ id }) => id).sort())
        // The dead one may have lost the last of its own, and has written none twice either.
        expect(rows).toEqual([...new Set(rows)])
        const paid = (task: string): TaskUsage =>
          task === failed ? { task, outcome: 'upstream_failed', videos: 0 } : { task, outcome: 'ok', videos: 1 }
        expect(await taskUsage(cluster.databaseUrl)).toEqual([...tasks].sort().map(paid))
      },
      TAKE_OVER_MS,
    )
  })
})

describe('replicas', () => {
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

  /** A restart of one replica as by an operator: without notice to the balancer. */
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

  /** Until what comes next goes to both: the balancer uses the replica with the fewest connections, and one has just started. */
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
    // The balancer uses the replica with the fewest connections: about half of them ran there.
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

    it('keeps every acknowledged task, once, and readable at both replicas', async () => {
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
})

describe('load kinds', () => {
  let upstreams: LoadUpstreams
  let gateway: TestGateway
  let dataDirectory: string
  beforeAll(async () => {
    upstreams = await startLoadUpstreams()
    dataDirectory = await newDataDirectory()
    gateway = await startGateway({ channels: upstreams.channels, dataDirectory, sections: { tasks: NEVER_POLLED } })
    await gateway.application.get(Database).open()
  })
  afterAll(async () => {
    await gateway.close()
    await upstreams.close()
    await rm(dataDirectory, { recursive: true })
  })

  const kindOf = (name: string): LoadKind => {
    const kind = upstreams.kinds.find((candidate) => candidate.name === name)
    if (kind === undefined) throw new Error(`nothing is asked of the kind ${name}`)
    return kind
  }

  async function answerTo({ method, path, headers = {}, body }: LoadQuestion): Promise<Buffer> {
    const request = {
      path,
      headers,
      ...(method === undefined ? {} : { method }),
      ...(body === undefined ? {} : { body }),
    }
    return (await sendRaw(gateway.url, request)).body
  }

  describe('The load of a rolling restart', () => {
    it.each(['chat', 'transcription', 'speech', 'document', 'messages', 'video', 'image'])(
      'takes the whole answer to a request of the kind %s for whole, and no other',
      async (name) => {
        const [question, another] = [kindOf(name).ask('load-1'), kindOf(name).ask('load-2')]
        const answer = await answerTo(question)
        expect(isWhole(question, answer)).toBe(true)
        expect(isWhole(another, answer)).toBe(false)
        const cut = [0, answer.length >> 1, answer.length - 3].map((length) => answer.subarray(0, length))
        for (const piece of [...cut, Buffer.from('{}')]) expect(isWhole(question, piece)).toBe(false)
      },
    )

    it('asks for every kind, and uploads some hundred kilobytes', () => {
      expect(upstreams.kinds).toHaveLength(7)
      expect(Buffer.from(kindOf('transcription').ask('load-3').body ?? '').length).toBeGreaterThan(300_000)
    })
  })
})
