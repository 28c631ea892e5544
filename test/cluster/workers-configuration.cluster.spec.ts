import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { ADMIN_KEY, type AdminAnswer, adminCaller } from '../support/admin-caller.js'
import { emptyDirectory } from '../support/gateway-process.js'
import { TEST_KEY } from '../support/gateway.js'
import type { TestPostgres } from '../support/postgres.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { startClusterPostgres } from './debian-postgres.js'
import { WorkerLab } from './worker-lab.js'

let postgres: TestPostgres
let simulator: Simulator
let databaseUrl: string
let lab: WorkerLab
beforeAll(async () => {
  postgres = await startClusterPostgres()
  databaseUrl = await postgres.emptyDatabase()
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key' })
}, CLUSTER_START_MS)
afterAll(async () => {
  await simulator.close()
  await postgres.close()
})
beforeEach(async () => {
  lab = new WorkerLab(await emptyDirectory())
  await configure(TEST_KEY)
  lab.start({ WORKERS: '2', DATABASE_URL: databaseUrl })
  await lab.listening()
})
afterEach(() => lab.gateway.close())

const configuration = (key: string): string =>
  JSON.stringify({
    auth: { keys: [{ id: 'test', key }], adminKey: ADMIN_KEY },
    channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
  })

/** The whole file at once, so that nobody reads half of it. */
async function writeConfiguration(text: string): Promise<void> {
  const file = join(lab.directory, 'gateway.yaml')
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}
const configure = (key: string): Promise<void> => writeConfiguration(configuration(key))

const FAULTY = 'auth: 1\n'

const reloaded = (worker: number): Promise<unknown> =>
  lab.gateway.said(new RegExp(`"worker":${worker},.*"configuration reloaded`))

async function reloadTo(key: string): Promise<void> {
  await configure(key)
  lab.gateway.child.kill('SIGHUP')
  await Promise.all([reloaded(1), reloaded(2)])
}

describe('the configuration of workers', () => {
  it.each([
    ['has been changed', (): Promise<void> => configure('newer-key')],
    ['has a fault', (): Promise<void> => writeConfiguration(FAULTY)],
    [
      'is gone',
      (): Promise<void> => rename(join(lab.directory, 'gateway.yaml'), join(lab.directory, 'elsewhere.yaml')),
    ],
  ])('is the accepted one for those that replace others while the file %s', async (_what, spoil) => {
    await reloadTo('accepted-key')
    await spoil()
    for (let count = 0; count < 2; count += 1) {
      expect(await lab.replaceOldest('accepted-key')).toEqual(new Set([200]))
    }
    expect(new Set(await lab.chats(10, 'accepted-key'))).toEqual(new Set([200]))
    for (const key of [TEST_KEY, 'newer-key']) expect(new Set(await lab.chats(10, key))).toEqual(new Set([401]))
  })

  it('stays what it is for all when a reload is refused, also for those that replace others', async () => {
    await writeConfiguration(FAULTY)
    lab.gateway.child.kill('SIGHUP')
    await Promise.all(
      [1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old`))),
    )
    const asked = await adminCaller(lab.url).call('POST', '/config/reload')
    expect(asked).toMatchObject({ status: 422, json: { error: { faults: ['auth: must be a map'] } } })
    expect(await lab.replaceOldest(TEST_KEY)).toEqual(new Set([200]))
  })

  it('is told to all after a refused reload', async () => {
    await writeConfiguration(FAULTY)
    lab.gateway.child.kill('SIGHUP')
    await Promise.all(
      [1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old`))),
    )
    await configure('second-key')
    expect(await adminCaller(lab.url).call('POST', '/config/reload')).toMatchObject({ status: 200 })
    await Promise.all([reloaded(1), reloaded(2)])
    expect(new Set(await lab.chats(10, 'second-key'))).toEqual(new Set([200]))
    expect(new Set(await lab.chats(10, TEST_KEY))).toEqual(new Set([401]))
  })

  it('is the newest for all after reloads by signal and by the administrator that overlap', async () => {
    for (let round = 0; round < 5; round += 1) {
      const asked: Promise<AdminAnswer>[] = []
      for (let turn = 0; turn < 10; turn += 1) {
        await configure(`key-${round}-${turn}`)
        lab.gateway.child.kill('SIGHUP')
        asked.push(adminCaller(lab.url).call('POST', '/config/reload'))
      }
      expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]))
      const all = new Set([200])
      await comesTrue(async () => isDeepStrictEqual(new Set(await lab.chats(20, `key-${round}-9`)), all))
    }
  })

  it('takes no limits that the workers which run cannot count together, although the file names a Redis', async () => {
    const auth = { keys: [{ id: 'test', key: 'limited-key', limits: { concurrency: 1 } }], adminKey: ADMIN_KEY }
    const redis = { url: 'redis://127.0.0.1:1' }
    await writeConfiguration(JSON.stringify({ ...JSON.parse(configuration(TEST_KEY)), auth, redis }))
    lab.gateway.child.kill('SIGHUP')
    await Promise.all(
      [1, 2].map((worker) =>
        lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old.*server\\.workers: 2 workers run`)),
      ),
    )
    expect(new Set(await lab.chats(10, 'limited-key'))).toEqual(new Set([401]))
    expect(new Set(await lab.chats(10, TEST_KEY))).toEqual(new Set([200]))
  })

  it('names to the administrator what needs a restart, and a new worker keeps to it as the others do', async () => {
    await writeConfiguration(JSON.stringify({ ...JSON.parse(configuration(TEST_KEY)), redis: { timeoutMs: 77 } }))
    for (let count = 0; count < 2; count += 1) {
      const asked = await adminCaller(lab.url).call('POST', '/config/reload')
      expect(asked).toMatchObject({ status: 200, json: { needs_restart: ['redis'] } })
      expect(await lab.replaceOldest(TEST_KEY)).toEqual(new Set([200]))
    }
  })
})
