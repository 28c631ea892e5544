import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { startP1Simulator } from '../../src/sandbox/p1/p1.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator.js'
import { startVidgenSimulator, type VidgenSimulator } from '../../src/sandbox/vidgen/vidgen.simulator.js'
import { CALLBACK_SECRET } from '../support/callback-lab.js'
import { CallbackReceiver } from '../support/callback-receiver.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { type ErrorBody, sendRaw } from '../support/raw-http.js'
import { VIDGEN_ACCESS, vidgenChannel } from '../support/vidgen-gateway.js'
import { VideoCaller } from '../support/video-caller.js'
import { type Cluster, CLUSTER_START_MS, startCluster } from './cluster.js'
import { comesTrue } from './daemon.js'
import type { Replica } from './replica.js'
import { openStream } from './running-stream.js'
import { lost, SteadyLoad } from './steady-load.js'

/** A poll's lease, and the pace of those who look for what nobody holds any more (docs/operations.md). */
const TAKE_OVER_MS = 150_000

/** Of the balancer: one interval, one fast interval, and time for a busy machine to look. */
const NOTICED_MS = 3_000

let simulator: Simulator
let videos: VidgenSimulator
let receiver: CallbackReceiver
let cluster: Cluster
let first: Replica
let second: Replica
beforeAll(async () => {
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key', paceMs: 20 })
  videos = await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' })
  receiver = await CallbackReceiver.start()
  cluster = await startCluster({
    channels: [
      { id: 'chat', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' },
      vidgenChannel('videos', videos),
    ],
    sections: {
      ssrf: { allow: [receiver.host] },
      tasks: { pollIntervalMs: 500 },
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
  await simulator.close()
})

/** Tasks created on one replica, with callbacks. */
const createOn = ({ url }: Replica, name: string, count: number): Promise<string[]> =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      new VideoCaller({ url }).created({ external_task_id: `${name}-${index}`, callback_url: receiver.url() }),
    ),
  )

/** The request ids in the usage of the store that begin so. */
async function recorded(prefix: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: cluster.databaseUrl })
  await client.connect()
  const { rows } = await client.query<{ request_id: string }>(
    'select request_id from usage_record where request_id like $1 order by request_id',
    [`${prefix}%`],
  )
  await client.end()
  return rows.map(({ request_id: id }) => id)
}

describe('kill -9 of one replica', () => {
  it(
    'costs what it had in hand and nothing else: no task, no callback, no usage of the other',
    async () => {
      const tasks = [...(await createOn(first, 'first', 5)), ...(await createOn(second, 'second', 5))]
      const streams = await Promise.all([1, 2, 3, 4].map(() => openStream(cluster.url, 200)))
      // Long enough that some are under way at any time.
      for (let count = 0; count < 900; count++) simulator.queueFault({ kind: 'delay', ms: 200 })
      const load = new SteadyLoad(cluster.url, 25)
      // Straight to the second, so that it is known whose they are.
      const names = Array.from({ length: 40 }, (_, index) => `acknowledged-${String(index).padStart(2, '0')}`)
      const acknowledged = names.map((name) =>
        sendRaw(second.url, { path: CHAT_PATH, headers: { 'x-request-id': name }, body: chatText('Hello') }),
      )
      // The balancer gives to whoever has least to do: half of them to each.
      await comesTrue(() => load.waiting >= 4)
      const killedAtMs = performance.now()
      await first.kill()
      const deadAtMs = performance.now()
      for (const id of tasks) videos.settle(id, 'succeed')

      const texts = await Promise.all(streams.map(({ text }) => text))
      const complete = texts.filter((text) => text.includes('[DONE]'))
      // Those of the dead one are cut where everybody sees it, those of the other go on.
      expect([complete.length, streams.filter(({ response }) => !response.complete).length]).toEqual([2, 2])
      await cluster.balancer.shows(1, false)
      expect(performance.now() - killedAtMs).toBeLessThan(NOTICED_MS + 3_000)
      const outcomes = await load.end()
      // The simulator remembers the last thousand: none was asked for twice.
      const asked = simulator.requests.flatMap(({ body }) => /This is (load-\d+)\./.exec(body.toString())?.[1] ?? [])
      expect([asked.length > 50, asked.length]).toEqual([true, new Set(asked).size])

      await receiver.has(tasks.length)
      const caller = new VideoCaller(cluster)
      for (const id of tasks) expect((await caller.read(id)).body.data.task_status).toBe('succeed')
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

      expect(await recorded('acknowledged-')).toEqual(names)
    },
    TAKE_OVER_MS,
  )
})
