import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '../../src/sandbox/p1/p1.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator.js'
import { KyselyUsageRepository } from '../../src/usage/kysely-usage.repository.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { p1Channel, UPSTREAM_KEY } from '../support/p1-gateway.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { openRaw, sendRaw } from '../support/raw-http.js'
import { STORE_START_MS, testStore } from '../support/stores.js'
import { getUsage, recordsOf } from '../support/usage-lab.js'

/** Longer than any test: nothing is written because its time has come. */
const NEVER_MS = 60_000

let postgres: TestPostgres
let simulator: Simulator
const processes: GatewayProcess[] = []

beforeAll(async () => {
  postgres = await startPostgres()
  simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
}, STORE_START_MS)
afterEach(async () => {
  for (const gateway of processes.splice(0)) await gateway.close()
})
afterAll(async () => {
  await simulator.close()
  await postgres.close()
})

async function start(sections: object, directory?: string): Promise<GatewayProcess> {
  const place = directory ?? (await emptyDirectory())
  const configuration = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }] },
    channels: [p1Channel('first', simulator)],
    ...sections,
  }
  await writeFile(join(place, 'gateway.yaml'), JSON.stringify(configuration))
  const gateway = runGateway(place)
  processes.push(gateway)
  return gateway
}

async function chats(url: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `process-${index}`)
  for (let at = 0; at < count; at += 20) {
    const send = (id: string): Promise<unknown> =>
      sendRaw(url, { path: CHAT_PATH, body: chatText('Hello'), headers: { 'x-request-id': id } })
    await Promise.all(ids.slice(at, at + 20).map(send))
  }
  return ids
}

async function storedIn(at: { readonly url: string } | { readonly directory: string }): Promise<string[]> {
  const store = testStore(at)
  try {
    const page = { ownerId: 'test', fromMs: 0, toMs: Date.now() * 2, limit: 10_000 }
    const records = await new KyselyUsageRepository(store.database).list(page)
    return records.map(({ requestId }) => requestId ?? '').sort()
  } finally {
    await store.close()
  }
}

describe('A gateway that is told to stop', () => {
  it(
    'has written what every answered call used before it ends: PostgreSQL',
    async () => {
      const database = { url: await postgres.emptyDatabase() }
      const gateway = await start({ database, usage: { batchMs: NEVER_MS, batchRows: 50 } })
      const url = await gateway.listening()
      const ids = await chats(url, 220)
      // One whose stream goes on while the gateway drains.
      const stream = await openRaw(url, {
        path: CHAT_PATH,
        body: chatText('#chunks=20 #pace=20', { stream: true }),
        headers: { 'x-request-id': 'process-last' },
      })
      stream.resume()
      gateway.child.kill('SIGTERM')
      expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
      expect(await storedIn(database)).toEqual([...ids, 'process-last'].sort())
    },
    STORE_START_MS,
  )

  it(
    'has written what every answered call used before it ends: the embedded store',
    async () => {
      const directory = await emptyDirectory()
      const gateway = await start({ usage: { store: true, batchMs: NEVER_MS } }, directory)
      const ids = await chats(await gateway.listening(), 60)
      gateway.child.kill('SIGTERM')
      expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
      expect(await storedIn({ directory: join(directory, 'data') })).toEqual(ids.sort())
    },
    STORE_START_MS,
  )

  it(
    'ends in time although the database is away, and leaves in the log what it could not write',
    async () => {
      const away = await startPostgres()
      const gateway = await start({ database: { url: await away.emptyDatabase() }, usage: { batchMs: NEVER_MS } })
      const url = await gateway.listening()
      await away.close()
      const ids = await chats(url, 5)
      gateway.child.kill('SIGTERM')
      expect(await gateway.exited).toMatchObject({ code: 0 })
      const lines = gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('"reason":"shutdown"'))
      const logged = lines.map((line) => (JSON.parse(line) as { record: { requestId: string } }).record.requestId)
      expect(logged.sort()).toEqual(ids.sort())
    },
    STORE_START_MS,
  )
})

describe('The sandbox', () => {
  it(
    'opens no store for a call, and one for whoever asks for usage',
    async () => {
      const gateway = runGateway(await emptyDirectory())
      processes.push(gateway)
      const url = await gateway.listening()
      const key = 'sandbox-demo-key'
      const headers = { authorization: `Bearer ${key}`, 'x-request-id': 'sandbox-1' }
      await sendRaw(url, { path: CHAT_PATH, body: chatText('Hello'), headers })
      expect(gateway.output()).not.toContain('opening the store')
      expect((await getUsage({ url }, '', key)).status).toBe(200)
      await gateway.said(/opening the store/)
      expect(await recordsOf({ url }, key)).toMatchObject([{ request_id: 'sandbox-1', outcome: 'ok' }])
    },
    STORE_START_MS,
  )
})
