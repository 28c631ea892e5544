import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { sql } from 'kysely'
import { dataDirectory, STORE_START_MS, type TestStore, testStore } from '../../test/support/stores.js'
import { tidy } from './housekeeping.js'

jest.setTimeout(STORE_START_MS)

let directory: string
let store: TestStore

beforeAll(async () => {
  directory = await dataDirectory()
  store = testStore({ directory })
})

afterAll(async () => {
  await store.close()
  await rm(directory, { recursive: true })
})

const rows = async (statement: string): Promise<unknown[]> =>
  store.database.run(async (queries) => (await sql.raw(statement).execute(queries)).rows)

/** As PostgreSQL counts them; it writes its counters down once a second unless asked. */
async function statistics(): Promise<{ readonly dead: number; readonly vacuums: number }> {
  await rows('select pg_stat_force_next_flush()')
  const [row] = await rows(
    "select n_dead_tup as dead, vacuum_count as vacuums from pg_stat_user_tables where relname = 'idempotency_key'",
  )
  return row as { dead: number; vacuums: number }
}

describe('tidy', () => {
  it('removes the dead rows of a busy table, and tells the planner of it', async () => {
    await rows('alter table idempotency_key drop constraint idempotency_key_task_id_fkey')
    await rows(`insert into idempotency_key
      select 'owner', '/', 'key-' || n, 'f', 'task', null, null, 0 from generate_series(1, 1000) n`)
    for (let time = 1; time <= 3; time += 1) await rows(`update idempotency_key set expires_at_ms = ${time}`)
    expect((await statistics()).dead).toBeGreaterThan(1200)
    await store.database.run(tidy)
    expect(await statistics()).toEqual({ dead: 0, vacuums: 1 })
    const [known] = await rows("select reltuples::bigint as count from pg_class where relname = 'idempotency_key'")
    expect(known).toEqual({ count: 1000 })
  })

  it('leaves a table alone that has hardly changed', async () => {
    await rows("update idempotency_key set expires_at_ms = 0 where key like 'key-1_'")
    expect((await statistics()).dead).toBeGreaterThan(0)
    await store.database.run(tidy)
    expect((await statistics()).vacuums).toBe(1)
  })
})
