import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import { type Balancer, startBalancer } from './balancer.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { LimitedCaller } from './limited-caller.js'
import { openStream } from './running-stream.js'

const PACE_MS = 20
/** Ten seconds of a stream: long enough to meet the drain, also on a busy machine. */
const SHORT_CHUNKS = 500
const ENDLESS_CHUNKS = 1_000_000

/** `hard-stop-after` in deploy/haproxy/haproxy.cfg, and docker-compose.yml's patience with it. */
const HARD_STOP_MS = 40_000
const KILLED_AFTER_MS = 45_000

let cluster: ChatCluster
beforeAll(async () => {
  cluster = await startChatCluster({ paceMs: PACE_MS })
}, CLUSTER_START_MS)
afterAll(() => cluster.close())

/** One for each test, as none survives it. */
let balancer: Balancer
beforeEach(async () => {
  balancer = await startBalancer(cluster.replicas.map(({ address }) => address))
  await balancer.shows(1, true)
})
afterEach(() => balancer.close())

/** What a new caller is told: the error of its connection, or nothing where one comes about. */
async function faultOfNew(url: string): Promise<string | undefined> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await once(socket, 'connect')
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    socket.destroy()
  }
}

describe('A balancer that is told to stop', () => {
  it('takes nothing new, lets streams and sessions end whole, and ends by itself after the last of them', async () => {
    const { url, operatorsUrl } = balancer
    const stream = await openStream(url, SHORT_CHUNKS)
    const session = await new LimitedCaller(url, TEST_KEY).dial()
    let isGone = false
    const drained = balancer.drain().finally(() => {
      isGone = true
    })
    for (const closed of [url, operatorsUrl]) await comesTrue(async () => (await faultOfNew(closed)) === 'ECONNREFUSED')
    expect(stream.response.complete).toBe(false)
    expect(await stream.text).toContain(`piece${SHORT_CHUNKS}`)
    expect(await stream.text).toContain('data: [DONE]')
    expect(stream.response.complete).toBe(true)
    const answered = once(session, 'pong')
    session.ping()
    await answered
    expect(isGone).toBe(false)
    session.close(1000)
    expect((await once(session, 'close'))[0]).toBe(1000)
    expect(await drained).toBe(0)
  })

  it(
    'does not wait for ever: what has not ended after forty seconds is cut, before Compose would kill it',
    async () => {
      const stream = await openStream(balancer.url, ENDLESS_CHUNKS)
      const aborted = cluster.simulator.nextAbort()
      const toldAtMs = performance.now()
      await balancer.drain()
      const tookMs = performance.now() - toldAtMs
      expect(tookMs).toBeGreaterThanOrEqual(HARD_STOP_MS - 100)
      expect(tookMs).toBeLessThan(KILLED_AFTER_MS)
      expect(await stream.text).not.toContain('[DONE]')
      // The gateway has seen that the caller is gone, and so has the upstream.
      await aborted
    },
    KILLED_AFTER_MS + 15_000,
  )
})
