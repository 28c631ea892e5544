import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { type BeforeApplicationShutdown, Injectable, Module } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { sql } from 'kysely'
import { parseConfig } from '../../test/support/config.js'
import {
  dataDirectory,
  emptyDataDirectory,
  nameDataDirectory,
  startPostgres,
  type TestPostgres,
  type TestStore,
  testStore,
} from '../../test/support/stores.js'
import { NOON_MS, usageRecord } from '../../test/support/task-rows.js'
import { ConfigurationModule } from '../config/config-store.js'
import { createLogging } from '../observability/logger.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { insertRecords, KyselyUsageRepository } from '../usage/usage.pg.js'
import { Database, StoreUnusable } from './database.js'
import { isUseless, storeFailure, storeOverloaded } from './reconnecting-database.js'
import { DatabaseModule } from './storage.module.js'

describe('migrations', () => {
  /** Takes a store back to 0003, but for columns that are written to. */
  const AS_BEFORE_HOURS = `drop trigger usage_record_added on usage_record; drop function add_usage_to_hours;
  drop table usage_hour, response_pin, kept_item, kept_response, background_response; delete from migration where name >= '0004'`

  const MIGRATIONS = [
    { name: '0001-tasks' },
    { name: '0002-usage' },
    { name: '0003-keys' },
    { name: '0004-usage-hours' },
    { name: '0005-refusal-counts' },
    { name: '0006-response-pins' },
    { name: '0007-translations' },
    { name: '0008-kept-responses' },
    { name: '0009-background-responses' },
    { name: '0010-usage-owner-index' },
  ]

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

describe('DatabaseModule', () => {
  /** A loop that has one more thing to write when it is told to stop. */
  @Injectable()
  class LastWrite implements BeforeApplicationShutdown {
    written: unknown

    constructor(private readonly database: Database) {}

    async beforeApplicationShutdown(): Promise<void> {
      const { rows } = await this.database.run((queries) => sql`select 'in time' as written`.execute(queries))
      this.written = rows
    }
  }

  @Module({ providers: [LastWrite] })
  class DistantModule {}

  afterEach(() => {
    nameDataDirectory(undefined)
  })

  it('gives the store to modules that import nothing, opens it for the module that asks, and closes it last', async () => {
    const directory = await dataDirectory()
    nameDataDirectory(directory)
    const nest = await Test.createTestingModule({
      imports: [
        ConfigurationModule.forRoot({ config: parseConfig('{}', {}) }),
        ObservabilityModule.forRoot(new Readiness(), new RequestHooks(), createLogging('silent').logger),
        DatabaseModule,
        DistantModule,
      ],
    }).compile()
    await nest.init()
    const owner = join(directory, 'OWNER')
    expect(existsSync(owner)).toBe(false)
    await nest.get(Database).open()
    expect(existsSync(owner)).toBe(true)
    const loop = nest.get(LastWrite, { strict: false })
    await nest.close()
    expect(loop.written).toEqual([{ written: 'in time' }])
    expect(existsSync(owner)).toBe(false)
    await rm(directory, { recursive: true })
  })
})

const withCode = (code: string): Error => Object.assign(new Error('said the server'), { code })

describe('storeFailure', () => {
  it.each([
    ...['08000', '08006', '57P01', '57P02', '57P03', '57P05', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'],
    ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', '25006', '42P01', '3D000'],
  ])('takes %s for a lost connection', (code) => {
    expect(storeFailure(withCode(code))).toBe('lost')
  })

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
    'Query read timeout',
    'terminating connection due to administrator command',
    'driver has already been destroyed',
  ])('takes "%s" for a lost connection', (message) => {
    expect(storeFailure(new Error(message))).toBe('lost')
  })

  it.each(['53100', '53200', '53300', '57014', '55P03', '40001', '40P01'])(
    'takes %s for a server that is busy',
    (code) => {
      expect(storeFailure(withCode(code))).toBe('busy')
    },
  )

  it('takes a pool without a free connection for busy, not for lost', () => {
    expect(storeFailure(new Error('timeout exceeded when trying to connect'))).toBe('busy')
  })

  it.each([
    ...['23505', '42703', '22003'].map((code) => [code, withCode(code)] as const),
    ['an error without a code', new Error('anything else')],
    ['what is no error', 'no error at all'],
  ])('takes %s for a fault of the statement', (_name, error) => {
    expect(storeFailure(error)).toBe('statement')
  })

  it('knows a connection that is still waiting for its answer, and one to a server that is of no use', () => {
    expect(isUseless(new Error('Query read timeout'))).toBe(true)
    expect(['25006', '42P01', '3D000'].map((code) => isUseless(withCode(code)))).toEqual([true, true, true])
    expect(isUseless(withCode('ECONNRESET'))).toBe(false)
  })

  it.each(['lost', 'busy'] as const)('tells callers when to come back, and no more than that (%s)', (failure) => {
    const error = storeOverloaded(failure, withCode('ECONNREFUSED'))
    expect(error).toMatchObject({ kind: 'overloaded', cause: { code: 'ECONNREFUSED' } })
    expect(error.message).not.toContain('said the server')
    expect(error.details.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(error.details.retryAfterSeconds).toBeLessThanOrEqual(5)
  })
})
