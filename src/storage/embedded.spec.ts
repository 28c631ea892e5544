import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { eventually } from '../../test/support/eventually.js'
import {
  dataDirectory,
  emptyDataDirectory,
  STORE_START_MS,
  type TestStore,
  testStore,
} from '../../test/support/stores.js'
import { GatewayError } from '../core/gateway-error.js'
import { PostgresWorker } from './postgres-worker.js'
import { StoreUnusable } from './store-unusable.js'

jest.setTimeout(STORE_START_MS)

let directory: string
const stores: TestStore[] = []

/** A store in the directory, closed after the test. */
function store(): TestStore {
  const opened = testStore({ directory })
  stores.push(opened)
  return opened
}

const one = async ({ database }: TestStore): Promise<unknown> =>
  database.run(async (queries) => (await sql`select 1 as one`.execute(queries)).rows)

beforeAll(async () => {
  directory = await dataDirectory()
})

afterEach(async () => {
  jest.restoreAllMocks()
  for (const opened of stores.splice(0)) await opened.close()
})

afterAll(() => rm(directory, { recursive: true }))

describe('the embedded store', () => {
  it('is opened by the first who needs it, says so once, and is closed without a trace of its owner', async () => {
    const opened = store()
    const told = jest.fn()
    opened.database.whenOpen(told)
    expect(opened.log()).toEqual([])
    expect(await Promise.all([one(opened), one(opened)])).toEqual([[{ one: 1 }], [{ one: 1 }]])
    expect(opened.log()).toMatchObject([{ msg: `opening the store in ${directory}` }])
    expect(told).toHaveBeenCalledTimes(1)
    opened.database.whenOpen(told)
    expect(told).toHaveBeenCalledTimes(2)
    await opened.close()
    expect(existsSync(join(directory, 'OWNER'))).toBe(false)
    await expect(one(opened)).rejects.toMatchObject({ kind: 'overloaded' })
  })

  it('writes through to the disk, and reads counts and times as numbers', async () => {
    const settings = await store().database.run((queries) =>
      sql`select current_setting('fsync') as fsync, current_setting('wal_sync_method') as method,
        current_setting('synchronous_commit') as commit, 1800000000000::bigint as time`.execute(queries),
    )
    expect(settings.rows).toEqual([{ fsync: 'on', method: 'fsync', commit: 'on', time: 1_800_000_000_000 }])
  })

  it('is refused to a second one until the first has closed it', async () => {
    const first = store()
    await first.database.open()
    const second = store()
    await expect(second.database.open()).rejects.toThrow(StoreUnusable)
    await expect(one(second)).rejects.toThrow(GatewayError)
    expect(second.readiness).toMatchObject({ isReady: false, word: 'store_unreachable' })
    await first.close()
    expect(await one(second)).toEqual([{ one: 1 }])
    expect(second.readiness.isReady).toBe(true)
  })

  it('undoes a transaction that fails, and passes on what the statement did wrong', async () => {
    const { database } = store()
    const key = { owner_id: 'a', route: '/', key: 'k', fingerprint: 'f', task_id: 'none', expires_at_ms: 0 }
    const insert = database.transaction((queries) => queries.insertInto('idempotency_key').values(key).execute())
    await expect(insert).rejects.toMatchObject({ code: '23503' })
    const rows = await database.run((queries) => queries.selectFrom('idempotency_key').selectAll().execute())
    expect(rows).toEqual([])
  })

  it('is down when its thread dies, keeps what it had acknowledged, and is opened again by the next use', async () => {
    const start = jest.spyOn(PostgresWorker, 'start')
    const opened = store()
    await opened.database.open()
    await opened.database.run((queries) => sql`create table kept as select 7 as number`.execute(queries))
    const [result] = start.mock.results
    ;((await result?.value) as PostgresWorker).kill()
    await eventually(() => opened.readiness.word === 'store_unreachable')
    const kept = await opened.database.run((queries) => sql`select number from kept`.execute(queries))
    expect(kept.rows).toEqual([{ number: 7 }])
    expect(opened.readiness.isReady).toBe(true)
    await opened.database.run((queries) => sql`drop table kept`.execute(queries))
    expect(start).toHaveBeenCalledTimes(2)
  })

  it('fails the query under way when its thread dies, as overloaded', async () => {
    const start = jest.spyOn(PostgresWorker, 'start')
    const opened = store()
    await opened.database.open()
    const [result] = start.mock.results
    const worker = (await result?.value) as PostgresWorker
    const query = opened.database.run((queries) => sql`select pg_sleep(60)`.execute(queries))
    worker.kill()
    await expect(query).rejects.toMatchObject({ kind: 'overloaded' })
  })

  it('makes a new store where a killed process had left half of one', async () => {
    const whole = directory
    directory = await emptyDataDirectory()
    await mkdir(join(directory, 'postgres'))
    await writeFile(join(directory, 'postgres', 'PG_VERSION'), '18\n')
    await writeFile(join(directory, 'CREATING'), '')
    const opened = store()
    expect(await one(opened)).toEqual([{ one: 1 }])
    expect(existsSync(join(directory, 'CREATING'))).toBe(false)
    await opened.close()
    await rm(directory, { recursive: true })
    directory = whole
  })

  it('says which directory it is that cannot be written to', async () => {
    const file = join(directory, 'file')
    await writeFile(file, '')
    const opened = testStore({ directory: join(file, 'data') })
    await expect(opened.database.open()).rejects.toThrow(StoreUnusable)
    await expect(opened.database.open()).rejects.toThrow(`The store in ${join(file, 'data')} cannot be written to`)
    await opened.close()
  })
})

describe('the thread of the embedded store', () => {
  it('begins each connection without what the one before has left', async () => {
    const worker = await PostgresWorker.start(join(directory, 'postgres'))
    const connect = async () => {
      const client = new pg.Client({ stream: () => worker.connect(), user: 'postgres', database: 'postgres' })
      client.on('error', () => undefined)
      await client.connect()
      return client
    }
    const first = await connect()
    await first.query('begin; create table left_behind (n int); set search_path = nowhere')
    await first.end()
    const second = await connect()
    const { rows } = await second.query<object>(
      "select to_regclass('left_behind') as found, current_setting('search_path') as path",
    )
    expect(rows).toEqual([{ found: null, path: 'public' }])
    await second.end()
    await worker.close()
  })
})
