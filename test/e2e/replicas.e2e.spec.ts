import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import pg from 'pg'
import { WebSocket } from 'ws'
import { Metrics } from '../../src/observability/metrics.js'
import { Database } from '../../src/storage/database.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-lab.js'
import { eventually, promised } from '../support/eventually.js'
import { CHAT_PATH, chatText, sendRaw, startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import {
  REALTIME_PATH,
  realtimeChannel,
  type RealtimeUpstream,
  startRealtimeUpstream,
} from '../support/realtime-upstream.js'
import { dataDirectory, emptyDataDirectory, startPostgres, type TestPostgres } from '../support/stores.js'
import { getUsage, recordsOf } from '../support/usage-lab.js'
import { bufferedIds } from '../support/usage-writer-lab.js'

describe('keys replicas', () => {
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
  })

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
      expect(await becomes(there, key, 401)).toBeLessThan(promised(DEAD_WITHIN_MS))
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
      expect(performance.now() - startedAtMs).toBeLessThan(promised(DEAD_WITHIN_MS))
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
      expect(await becomes(here, key, 401)).toBeLessThan(promised(DEAD_WITHIN_MS))
    })

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
    })
  })
})

describe('replicas', () => {
  let postgres: TestPostgres
  let simulator: Simulator
  const gateways: TestGateway[] = []
  /** Directories of theirs. */
  const places: string[] = []

  /** The store is tried again every fifteen seconds at last; an outage on a busy machine may be as long as that takes. */
  const UNTIL_TRIED_AGAIN_MS = 20_000
  const OUTAGE_TEST_MS = 60_000

  beforeAll(async () => {
    postgres = await startPostgres()
    simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  })
  afterEach(async () => {
    for (const gateway of gateways.splice(0)) await gateway.close()
    for (const place of places.splice(0)) await rm(place, { recursive: true })
  })
  afterAll(async () => {
    await simulator.close()
    await postgres.close()
  })

  async function replica(sections: object, directory?: string): Promise<TestGateway> {
    const gateway = await startGateway({
      channels: [p1Channel('first', simulator)],
      sections,
      ...(directory === undefined ? {} : { dataDirectory: directory }),
    })
    gateways.push(gateway)
    return gateway
  }

  async function chats(gateway: TestGateway, count: number, name: string): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, index) => `${name}-${index}`)
    const answers = await Promise.all(
      ids.map((id) =>
        sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers: { 'x-request-id': id } }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
    return ids
  }

  const recorded = async (gateway: TestGateway): Promise<string[]> =>
    (await recordsOf(gateway)).map(({ request_id: id }) => id ?? '').sort()

  /** Nothing while the store does not answer. */
  const recordedIfAny = (gateway: TestGateway): Promise<string[]> => recorded(gateway).catch(() => [])

  const recordedSoon = (gateway: TestGateway, count: () => number): Promise<void> =>
    eventually(
      async () => (await recordedIfAny(gateway)).length === count(),
      () => recorded(gateway),
      UNTIL_TRIED_AGAIN_MS,
    )

  describe('Two replicas with one database', () => {
    it('write what each has served, and both show all of it', async () => {
      const database = { url: await postgres.emptyDatabase() }
      const [one, two] = await Promise.all([replica({ database }), replica({ database })])
      const ids = (await Promise.all([chats(one, 40, 'one'), chats(two, 40, 'two'), chats(one, 20, 'more')])).flat()
      await eventually(async () => (await recorded(one)).length + (await recorded(two)).length === 2 * ids.length)
      expect(await recorded(one)).toEqual(ids.sort())
      expect(await recorded(two)).toEqual(ids)
    })
  })

  describe('While the database is away', () => {
    it(
      'calls are served as ever, and what they used is there once it is back',
      async () => {
        const database = { url: await postgres.emptyDatabase() }
        const gateway = await replica({ database, usage: { batchMs: 10 } })
        await gateway.application.get(Database).open()
        const before = await chats(gateway, 5, 'before')
        await eventually(async () => (await recorded(gateway)).length === before.length)
        await postgres.kill()
        const startedAtMs = performance.now()
        const during = await chats(gateway, 20, 'during')
        // No request waited for a database: its own timeouts are longer.
        expect(performance.now() - startedAtMs).toBeLessThan(promised(2500))
        await eventually(async () => (await getUsage(gateway)).status === 503)
        await postgres.start()
        const expected = [...before, ...during].sort()
        await recordedSoon(gateway, () => expected.length)
        expect(await recorded(gateway)).toEqual(expected)
        expect(gateway.logText()).not.toContain('"record"')
      },
      OUTAGE_TEST_MS,
    )

    it(
      'what does not fit into the queue waits in files, and is stored by the running process once it is back',
      async () => {
        const database = { url: await postgres.emptyDatabase() }
        const place = await emptyDataDirectory()
        places.push(place)
        const gateway = await replica({ database, usage: { batchMs: 10, batchRows: 2, queueRows: 5 } }, place)
        await gateway.application.get(Database).open()
        await postgres.kill()
        const ids = await chats(gateway, 30, 'many')
        const folder = join(place, 'unstored-usage')
        const { registry } = gateway.application.get(Metrics)
        await eventually(async () => {
          const queued = /^gateway_usage_queue_rows (\d+)$/m.exec(await registry.metrics())?.[1]
          return Number(queued) <= 7 && (await readdir(folder).catch(() => [])).length > 0
        })
        expect((await bufferedIds(folder)).length).toBeGreaterThanOrEqual(20)
        await postgres.start()
        await recordedSoon(gateway, () => ids.length)
        expect(await recorded(gateway)).toEqual(ids.sort())
        await eventually(async () => (await readdir(folder)).length === 0)
        expect(gateway.logText()).toContain('"usage is stored that had no room in the queue"')
        expect(gateway.logText()).not.toContain('"record"')
        expect(await registry.metrics()).not.toMatch(/^gateway_usage_dropped_total\{/m)
      },
      OUTAGE_TEST_MS,
    )

    it(
      'what fits neither into the queue nor into a file is in the log, and the rest is stored',
      async () => {
        const database = { url: await postgres.emptyDatabase() }
        const usage = { batchMs: 10, batchRows: 2, queueRows: 5 }
        const gateway = await replica({ database, usage }, '/dev/null/data')
        await gateway.application.get(Database).open()
        await postgres.kill()
        const ids = await chats(gateway, 30, 'many')
        const lines = (): string[] =>
          gateway
            .logText()
            .split('\n')
            .filter((line) => line.includes('"reason":"overflow"'))
        const { registry } = gateway.application.get(Metrics)
        await eventually(async () => {
          const queued = /^gateway_usage_queue_rows (\d+)$/m.exec(await registry.metrics())?.[1]
          return lines().length + Number(queued) === ids.length
        })
        await postgres.start()
        await recordedSoon(gateway, () => ids.length - lines().length)
        const logged = lines().map((line) => (JSON.parse(line) as { record: { requestId: string } }).record.requestId)
        expect(logged.length).toBeGreaterThanOrEqual(20)
        expect([...logged, ...(await recorded(gateway))].sort()).toEqual(ids.sort())
      },
      OUTAGE_TEST_MS,
    )
  })

  /** As a server that has become a standby: every statement that writes fails. */
  async function setReadOnly(url: string, isReadOnly: boolean): Promise<void> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('set default_transaction_read_only = off')
    await client.query(`alter system set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`)
    await client.query('select pg_reload_conf()')
    await client.end()
  }

  describe('While the database can only be read', () => {
    it(
      'what was used waits, whole, and is there once the database can be written to again',
      async () => {
        const database = { url: await postgres.emptyDatabase() }
        const gateway = await replica({ database, usage: { batchMs: 10, batchRows: 20 } })
        await gateway.application.get(Database).open()
        await setReadOnly(database.url, true)
        try {
          const ids = await chats(gateway, 60, 'read-only')
          await eventually(() => gateway.logText().includes('the store is lost'))
          expect(gateway.logText()).not.toContain('a usage record was refused by the store')
          await setReadOnly(database.url, false)
          await recordedSoon(gateway, () => ids.length)
          expect(await recorded(gateway)).toEqual(ids.sort())
          expect(gateway.logText()).not.toContain('"record"')
          expect(await gateway.application.get(Metrics).registry.metrics()).not.toMatch(
            /^gateway_usage_dropped_total\{/m,
          )
        } finally {
          await setReadOnly(database.url, false)
        }
      },
      OUTAGE_TEST_MS,
    )
  })

  describe('A gateway that needs no store', () => {
    it('opens none for requests, and has all of them in a usage report', async () => {
      const directory = await dataDirectory()
      places.push(directory)
      const gateway = await replica({ usage: { batchMs: 1 } }, directory)
      const ids = await chats(gateway, 5, 'quiet')
      let isOpen = false
      gateway.application.get(Database).whenOpen(() => {
        isOpen = true
      })
      expect(isOpen).toBe(false)
      expect(gateway.logText()).not.toContain('opening the store')
      await eventually(async () => (await recorded(gateway)).length === ids.length)
      expect(isOpen).toBe(true)
    })
  })
})
