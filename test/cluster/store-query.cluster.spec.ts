import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { TestPostgres } from '../support/postgres.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue } from './daemon.js'
import { startClusterPostgres } from './debian-postgres.js'
import { rowsOf } from './store-query.js'

let postgres: TestPostgres
let watched: string
let watcher: string
beforeAll(async () => {
  postgres = await startClusterPostgres()
  watched = await postgres.emptyDatabase()
  watcher = await postgres.emptyDatabase()
}, CLUSTER_START_MS)
afterAll(() => postgres.close())

/** Of the watched database, as its server knows them. */
async function connections(): Promise<number> {
  const rows = await rowsOf<{ readonly open: number }>(
    watcher,
    'select count(*)::integer as open from pg_stat_activity where datname = $1',
    [new URL(watched).pathname.slice(1)],
  )
  return rows[0]?.open ?? -1
}

const noConnection = (): Promise<void> => comesTrue(async () => (await connections()) === 0)

describe('One question to the store', () => {
  it('has its rows, and leaves no connection open', async () => {
    expect(await rowsOf(watched, 'select $1::text as said', ['yes'])).toEqual([{ said: 'yes' }])
    await noConnection()
  })

  it('that is refused says why, and leaves no connection open either', async () => {
    await expect(rowsOf(watched, 'select nothing')).rejects.toThrow('column "nothing" does not exist')
    await noConnection()
  })

  it('to a database that does not exist says so', async () => {
    await expect(rowsOf(`${watched}_else`, 'select 1')).rejects.toThrow('does not exist')
  })
})
