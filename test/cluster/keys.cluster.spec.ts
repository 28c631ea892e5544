import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { adminCaller, ADMIN_KEY } from '../support/admin-caller.js'
import { TEST_KEY } from '../support/gateway.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { chat } from './worker-lab.js'

/** What is promised for every replica. */
const DEAD_WITHIN_MS = 5_000

let cluster: ChatCluster
beforeAll(async () => {
  cluster = await startChatCluster({
    sections: { auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } },
  })
}, CLUSTER_START_MS)
afterAll(() => cluster.close())

/** Of so many requests through the balancer, each on a connection of its own. */
const statuses = async (key: string): Promise<ReadonlySet<number>> =>
  new Set(await Promise.all(Array.from({ length: 10 }, () => chat(cluster.url, key))))

/** How long it took until every request through the balancer is answered with this status. */
async function becomes(key: string, status: number): Promise<number> {
  const startedAtMs = performance.now()
  await comesTrue(async () => {
    const seen = await statuses(key)
    return seen.size === 1 && seen.has(status)
  })
  return performance.now() - startedAtMs
}

describe('a key behind the balancer', () => {
  it.each([
    ['first', 0],
    ['second', 1],
  ])(
    'works on both replicas soon and is dead on both within five seconds when the %s says so',
    async (_which, index) => {
      const admin = adminCaller(cluster.replicas[index]?.url ?? '')
      const { id, key } = await admin.issue()
      expect(await becomes(key, 200)).toBeLessThan(DEAD_WITHIN_MS)
      expect(await admin.call('DELETE', `/keys/${id}`)).toMatchObject({ status: 200 })
      expect(await becomes(key, 401)).toBeLessThan(DEAD_WITHIN_MS)
      expect(await statuses(TEST_KEY)).toEqual(new Set([200]))
    },
  )

  it('is dead on a replica that was started again, and the one that is alive is not', async () => {
    const admin = adminCaller(cluster.replicas[0]?.url ?? '')
    const [dead, alive] = [await admin.issue(), await admin.issue()]
    await admin.call('DELETE', `/keys/${dead.id}`)
    await cluster.replicas[1]?.kill()
    await cluster.replicas[1]?.start()
    const url = cluster.replicas[1]?.url ?? ''
    expect([await chat(url, dead.key), await chat(url, alive.key)]).toEqual([401, 200])
  })
})
