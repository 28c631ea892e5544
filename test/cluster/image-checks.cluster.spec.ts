import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ADMIN_KEY } from '../support/admin-lab.js'
import { TEST_KEY } from '../support/gateway.js'
import type { LoopbackServer } from '../support/loopback-server.js'
import { GOOD_ANSWERS, startOperatorsPort } from '../support/test-image-lab.js'
import { type ChatCluster, CLUSTER_START_MS, startChatCluster } from './cluster.js'

const { checkProduction } = (await import(new URL('../../scripts/test-image-checks.mjs', import.meta.url).href)) as {
  checkProduction: (set: object) => Promise<void>
}

let cluster: ChatCluster
/** Of the real set, only Prometheus is played. */
let prometheus: LoopbackServer
beforeAll(async () => {
  const limits = { requestsPerMinute: 1000 }
  cluster = await startChatCluster({
    channel: { id: 'p1-main' },
    sections: { auth: { keys: [{ id: 'team-a', key: TEST_KEY, limits }], adminKey: ADMIN_KEY } },
  })
  prometheus = await startOperatorsPort(GOOD_ANSWERS)
}, CLUSTER_START_MS)
afterAll(() => Promise.all([cluster.close(), prometheus.close()]))

const setBehind = (callersUrl: string): object => ({
  callersUrl,
  operatorsUrl: cluster.balancer.operatorsUrl,
  prometheusUrl: `http://127.0.0.1:${prometheus.port}`,
  key: TEST_KEY,
  adminKey: ADMIN_KEY,
})

describe('what npm run test:image asks of the production set', () => {
  it('holds where the same servers run without containers', async () => {
    await expect(checkProduction(setBehind(cluster.url))).resolves.toBeUndefined()
  })

  it('does not hold at a gateway that callers reach without the balancer', async () => {
    await expect(checkProduction(setBehind(cluster.replicas[0]?.url ?? ''))).rejects.toThrow(/admin\/v1\/keys answered/)
  })

  it('does not hold where something else answers', async () => {
    const server = createServer((_request, response) => response.end('{"status":"ready"}')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      await expect(checkProduction(setBehind(url))).rejects.toThrow(/p1-main/)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
