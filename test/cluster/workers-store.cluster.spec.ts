import { afterEach, describe, expect, it } from '@jest/globals'
import { ADMIN_KEY, adminCaller } from '../support/admin-caller.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { NEVER_MS } from '../support/process-labs.js'
import { sendRaw } from '../support/raw-http.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue, until } from './daemon.js'
import { requestUsage } from './store-rows.js'
import { startWorkerPair, type WorkerPair } from './worker-pair.js'

/** What is promised for every process. */
const DEAD_WITHIN_MS = 5_000

let pair: WorkerPair
const started: WorkerPair[] = []
afterEach(async () => {
  for (const each of started.splice(0)) await each.close()
})

async function start(sections: object, auth: object = {}): Promise<void> {
  pair = await startWorkerPair(sections, auth)
  started.push(pair)
}

/** A chat on a connection of its own. */
async function chatAs(id: string, key = TEST_KEY): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'x-request-id': id }
  return (await sendRaw(pair.lab.url, { path: CHAT_PATH, headers, body: chatText('Hello') })).status
}

/** By the log, which comes after the answer: who served these requests. */
async function workersOf(ids: readonly string[]): Promise<readonly number[]> {
  const workerOf = (id: string): number =>
    Number(new RegExp(`^\\{"worker":(\\d),[^\\n]*"requestId":"${id}"`, 'm').exec(pair.lab.gateway.output())?.[1])
  await comesTrue(() => !ids.map(workerOf).some(Number.isNaN))
  return ids.map(workerOf)
}

let asked = 0
interface Answer {
  readonly status: number
  /** By `performance.now()`. */
  readonly sentAtMs: number
}

/** Asks on fresh connections until every worker has answered; resolves with all answers of each. */
async function answersOfEach(key: string): Promise<ReadonlyMap<number, readonly Answer[]>> {
  const answers = new Map<number, Answer[]>()
  await until(
    async () => {
      const ids = Array.from({ length: 4 }, () => `asked-${++asked}`)
      const sentAtMs = performance.now()
      const statuses = await Promise.all(ids.map((id) => chatAs(id, key)))
      for (const [index, worker] of (await workersOf(ids)).entries())
        answers.set(worker, [...(answers.get(worker) ?? []), { status: statuses[index] ?? 0, sentAtMs }])
      return answers.size === 2 || undefined
    },
    () => `not every worker was met:\n${pair.lab.gateway.output().slice(-2000)}`,
  )
  return answers
}

/**
 * Resolves once every worker gives this answer to each of the keys, and no other, with how long after the call the last
 * question was sent that got another one; 0 where none did. How long the search itself takes is nobody's promise.
 */
async function become(keys: readonly string[], wanted: number): Promise<number> {
  const startedAtMs = performance.now()
  let lastWrongAtMs = startedAtMs
  for (const key of keys)
    await comesTrue(async () => {
      const wrong = [...(await answersOfEach(key)).values()].flat().filter(({ status }) => status !== wanted)
      lastWrongAtMs = Math.max(lastWrongAtMs, ...wrong.map(({ sentAtMs }) => sentAtMs))
      return wrong.length === 0
    })
  return lastWrongAtMs - startedAtMs
}

describe('server.workers: 2 on PostgreSQL', () => {
  it(
    'serves keys that one worker has issued, and refuses those that one has revoked, on both within five seconds',
    async () => {
      await start({}, { adminKey: ADMIN_KEY })
      const admin = adminCaller(pair.lab.url)
      const revokers = new Set<number>()
      // Whoever revokes a key knows it at once: each has to, while the other learns of it.
      while (revokers.size < 2) {
        const issued = await Promise.all([1, 2, 3, 4].map(() => admin.issue()))
        const keys = issued.map(({ key }) => key)
        expect(await become(keys, 200)).toBeLessThan(DEAD_WITHIN_MS)
        const revoked = await Promise.all(issued.map(({ id }) => admin.call('DELETE', `/keys/${id}`)))
        expect(await become(keys, 401)).toBeLessThan(DEAD_WITHIN_MS)
        expect(revoked.map(({ status }) => status)).toEqual([200, 200, 200, 200])
        for (const worker of await workersOf(revoked.map(({ headers }) => String(headers['x-request-id']))))
          revokers.add(worker)
        const served = [...(await answersOfEach(TEST_KEY)).values()]
        expect(served.map((each) => new Set(each.map(({ status }) => status)))).toEqual([
          new Set([200]),
          new Set([200]),
        ])
      }
    },
    CLUSTER_START_MS,
  )

  it(
    'loses no usage of a call that is answered when it is told to stop in the middle of calls',
    async () => {
      // Nothing is written because its time has come: all of it is written at the end.
      await start({ usage: { batchMs: NEVER_MS } })
      const { lab, simulator, proxy, databaseUrl } = pair
      const names = Array.from({ length: 60 }, (_, index) => `call-${String(index).padStart(2, '0')}`)
      const [before, during] = [names.slice(0, 20), names.slice(20)]
      for (const id of before) expect(await chatAs(id)).toBe(200)
      proxy.hold()
      const answers = during.map((id) => chatAs(id))
      await comesTrue(() => simulator.requests.length === names.length)
      expect(await requestUsage(databaseUrl, 'call-')).toEqual([])
      lab.gateway.child.kill('SIGTERM')
      await Promise.all([1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*"draining"`))))
      proxy.release()
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
      expect(await lab.gateway.exited).toMatchObject({ code: 0, signal: null, errors: '' })
      expect(new Set(await workersOf(during)).size).toBe(2)
      expect(await requestUsage(databaseUrl, 'call-')).toEqual(names)
    },
    CLUSTER_START_MS,
  )
})
