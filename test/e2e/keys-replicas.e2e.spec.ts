import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { adminCaller, ADMIN_KEY } from '../support/admin-caller.js'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { sendRaw } from '../support/raw-http.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { STORE_START_MS } from '../support/stores.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'

/** What is promised for every replica. */
const DEAD_WITHIN_MS = 5_000

let postgres: TestPostgres
let upstream: RealtimeUpstream
let here: TestGateway
let there: TestGateway

/** Two replicas as operators run them: one store, the defaults of everything. */
beforeAll(async () => {
  postgres = await startPostgres()
  upstream = await startRealtimeUpstream()
  const sections = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY },
    database: { url: await postgres.emptyDatabase() },
  }
  const start = (): Promise<TestGateway> => startGateway({ channels: [realtimeChannel(upstream)], sections })
  here = await start()
  there = await start()
}, STORE_START_MS)

afterAll(async () => {
  await here.close()
  await there.close()
  await upstream.close()
  await postgres.close()
})

const statusAt = async (gateway: TestGateway, key: string): Promise<number> =>
  (await sendRaw(gateway.url, { method: 'GET', path: '/v1/models', headers: { authorization: `Bearer ${key}` } }))
    .status

const becomes = async (gateway: TestGateway, key: string, status: number): Promise<number> => {
  const startedAtMs = performance.now()
  await eventually(async () => (await statusAt(gateway, key)) === status)
  return performance.now() - startedAtMs
}

async function openSession(gateway: TestGateway, key: string): Promise<WebSocket> {
  const socket = new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, {
    headers: { authorization: `Bearer ${key}` },
  })
  await once(socket, 'open')
  return socket
}

describe('a key that one replica issues', () => {
  it('works there at once and on the other soon, and is dead there at once and on the other within five seconds', async () => {
    const { id, key } = await adminCaller(here.url).issue()
    expect(await statusAt(here, key)).toBe(200)
    await becomes(there, key, 200)
    await adminCaller(here.url).call('DELETE', `/keys/${id}`)
    expect(await statusAt(here, key)).toBe(401)
    expect(await becomes(there, key, 401)).toBeLessThan(DEAD_WITHIN_MS)
  })

  it('ends with its realtime sessions on both', async () => {
    const { id, key } = await adminCaller(here.url).issue()
    await becomes(there, key, 200)
    const sessions = [await openSession(here, key), await openSession(there, key)]
    const bystander = await openSession(there, TEST_KEY)
    const startedAtMs = performance.now()
    const closings = sessions.map((session) => once(session, 'close') as Promise<[number, Buffer]>)
    const errors = sessions.map((session) => once(session, 'message') as Promise<[Buffer]>)
    await adminCaller(here.url).call('DELETE', `/keys/${id}`)
    for (const [code, reason] of await Promise.all(closings)) {
      expect([code, reason.toString()]).toEqual([1008, 'the API key is not valid any more'])
    }
    for (const [message] of await Promise.all(errors)) {
      expect(JSON.parse(message.toString())).toMatchObject({ type: 'error', error: { code: 'invalid_api_key' } })
    }
    expect(performance.now() - startedAtMs).toBeLessThan(DEAD_WITHIN_MS)
    await eventually(() => upstream.sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length === 1)
    expect(bystander.readyState).toBe(WebSocket.OPEN)
    bystander.terminate()
  })

  it('takes its session along when it expires', async () => {
    const { id, key } = await adminCaller(here.url).issue()
    const session = await openSession(here, key)
    const closed = once(session, 'close') as Promise<[number]>
    await adminCaller(here.url).call('PATCH', `/keys/${id}`, { expires_at: Date.now() + 300 })
    expect((await closed)[0]).toBe(1008)
  })

  it('opens no session when it is revoked while the upstream is being dialled', async () => {
    const slow = await startRealtimeUpstream(() => undefined)
    const gateway = await startGateway({
      channels: [realtimeChannel(slow)],
      sections: { auth: { adminKey: ADMIN_KEY }, database: { url: await postgres.emptyDatabase() } },
    })
    const { id, key } = await adminCaller(gateway.url).issue()
    const dialled = slow.nextUpgrade()
    const socket = new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, {
      headers: { authorization: `Bearer ${key}` },
    })
    const refused = once(socket, 'unexpected-response') as Promise<[unknown, { statusCode: number }]>
    const upgrade = await dialled
    await adminCaller(gateway.url).call('DELETE', `/keys/${id}`)
    upgrade.accept()
    expect((await refused)[1].statusCode).toBe(401)
    await gateway.close()
    await slow.close()
  })
})

describe('while PostgreSQL is away', () => {
  it('known keys go on, nothing is issued or revoked, and afterwards everything is as it was', async () => {
    const { id, key } = await adminCaller(here.url).issue()
    await becomes(there, key, 200)
    await postgres.kill()
    expect([await statusAt(here, key), await statusAt(there, key)]).toEqual([200, 200])
    const admin = adminCaller(there.url)
    for (const [method, path, body] of [
      ['POST', '/keys', {}],
      ['GET', '/keys'],
      ['DELETE', `/keys/${id}`],
      ['POST', '/channels/first/reset'],
      ['POST', '/config/reload'],
    ] as const) {
      const answer = await admin.call(method, path, body)
      expect([method, path, answer.status, answer.json]).toMatchObject([
        method,
        path,
        503,
        { error: { code: 'overloaded' } },
      ])
    }
    // What only looks at this process goes on; a wrong key is wrong.
    expect((await admin.call('GET', '/channels')).status).toBe(200)
    expect((await adminCaller(there.url, key).call('GET', '/channels')).status).toBe(401)
    expect(await statusAt(there, key)).toBe(200)
    await postgres.start()
    await eventually(async () => (await admin.call('DELETE', `/keys/${id}`)).status === 200)
    expect(await statusAt(there, key)).toBe(401)
    expect(await becomes(here, key, 401)).toBeLessThan(DEAD_WITHIN_MS)
  }, 60_000)

  it('a gateway that starts knows its configured keys, and does not call the others wrong', async () => {
    const url = await postgres.emptyDatabase()
    await postgres.kill()
    const gateway = await startGateway({
      channels: [realtimeChannel(upstream)],
      sections: { auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY }, database: { url } },
    })
    const issued = 'sk-gw-0000000000000000000000000000000000000000000'
    expect(await statusAt(gateway, TEST_KEY)).toBe(200)
    expect(await statusAt(gateway, issued)).toBe(503)
    expect(await statusAt(gateway, 'somebody')).toBe(401)
    await postgres.start()
    await becomes(gateway, issued, 401)
    await gateway.close()
  }, 60_000)
})
