import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { CALLBACK_SECRET } from '../support/callback-lab.js'
import { CallbackReceiver } from '../support/callback-receiver.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { type ErrorBody, sendRaw } from '../support/raw-http.js'
import { VIDGEN_ACCESS, vidgenChannel } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'
import { lost, SteadyLoad } from './callers.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { chats } from './load-kinds.js'
import type { Replica } from './replica.js'
import { openStream } from './running-stream.js'
import { endedTasks, requestUsage, type TaskUsage, taskUsage } from './store-rows.js'

/** A poll's lease, and the pace of those who look for what nobody holds any more (docs/operations.md). */
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
      // The balancer gives to whoever has least to do: half of them to each.
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
      // Those of the dead one are cut where everybody sees it, those of the other go on.
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
