import { rm } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { sql } from 'kysely'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.js'
import { emptyDataDirectory, STORE_START_MS, type TestStore, testStore } from '../../test/support/stores.js'
import { NOON_MS, usageRecord } from '../../test/support/usage-records.js'
import { KyselyUsageRepository } from '../usage/kysely-usage.repository.js'
import { insertRecords } from '../usage/usage-rows.repository.js'
import type { Database } from './database.js'
import { StoreUnusable } from './store-unusable.js'

jest.setTimeout(STORE_START_MS)

/** Takes a store back to 0003. */
const AS_BEFORE_HOURS = `drop trigger usage_record_added on usage_record; drop function add_usage_to_hours;
  drop table usage_hour; delete from migration where name = '0004-usage-hours'`

const MIGRATIONS = [{ name: '0001-tasks' }, { name: '0002-usage' }, { name: '0003-keys' }, { name: '0004-usage-hours' }]

let postgres: TestPostgres
let directory: string
const stores: TestStore[] = []

const open = async (at: { readonly url: string } | { readonly directory: string }): Promise<Database> => {
  const store = testStore(at)
  stores.push(store)
  await store.database.open()
  return store.database
}

const closeAll = async (): Promise<void> => {
  for (const store of stores.splice(0)) await store.close()
}

/** Everything that makes the schema: columns, constraints and indexes, in words that both engines have. */
async function schemaOf(database: Database): Promise<Record<string, unknown[]>> {
  const rows = (query: string): Promise<unknown[]> =>
    database.run(async (queries) => (await sql.raw(query).execute(queries)).rows)
  return {
    columns: await rows(
      `select table_name, column_name, data_type, is_nullable, column_default, is_identity
       from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`,
    ),
    constraints: await rows(
      `select conrelid::regclass::text as table, conname, pg_get_constraintdef(oid) as definition
       from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`,
    ),
    indexes: await rows(`select indexname, indexdef from pg_indexes where schemaname = 'public' order by indexname`),
    migrations: await rows('select name from migration order by name'),
  }
}

beforeAll(async () => {
  postgres = await startPostgres()
  directory = await emptyDataDirectory()
})

afterEach(closeAll)

afterAll(async () => {
  await postgres.close()
  await rm(directory, { recursive: true })
})

describe('migrations', () => {
  it('make the same schema in both engines, and change nothing when they are applied again', async () => {
    const url = await postgres.emptyDatabase()
    const first = [await schemaOf(await open({ url })), await schemaOf(await open({ directory }))]
    await closeAll()
    const second = [await schemaOf(await open({ url })), await schemaOf(await open({ directory }))]
    expect(second).toEqual(first)
    expect(first[0]).toEqual(first[1])
    expect(first[0]?.['migrations']).toEqual(MIGRATIONS)
    expect(first[0]?.['columns']?.length).toBeGreaterThan(40)
  })

  it('add up by the hour what earlier versions have stored', async () => {
    for (const at of [{ url: await postgres.emptyDatabase() }, { directory }]) {
      const before = await open(at)
      await before.run((queries) => sql.raw(AS_BEFORE_HOURS).execute(queries))
      const records = [0, 1, 2].map((index) => usageRecord({ atMs: NOON_MS + index, cost: '0.1' }))
      await before.run((queries) => insertRecords(queries, records))
      await closeAll()
      const usage = new KyselyUsageRepository(await open(at))
      await usage.insert([usageRecord({ atMs: NOON_MS + 3, cost: '0.1' })])
      const hour = { fromMs: NOON_MS, toMs: NOON_MS + 3_600_000, groupBy: [] }
      expect(await usage.sums(hour, 1)).toMatchObject([{ records: 4, cost: '0.4', units: { promptTokens: 40 } }])
      await closeAll()
    }
  })

  it('are applied once by five replicas that start together', async () => {
    const url = await postgres.emptyDatabase()
    const databases = await Promise.all(Array.from({ length: 5 }, () => open({ url })))
    const applied = await databases[0]?.run(
      async (queries) => (await sql`select name from migration`.execute(queries)).rows,
    )
    expect(applied).toEqual(MIGRATIONS)
  })

  it('refuse a store that a newer version has migrated', async () => {
    const url = await postgres.emptyDatabase()
    const database = await open({ url })
    await database.run((queries) => sql`insert into migration values ('9999-future', 'some day')`.execute(queries))
    const late = open({ url })
    await expect(late).rejects.toThrow(StoreUnusable)
    await expect(late).rejects.toThrow('newer version of the gateway (9999-future)')
  })
})
