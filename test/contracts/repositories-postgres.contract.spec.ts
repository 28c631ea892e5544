import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { KyselyUsageRepository } from '../../src/usage/kysely-usage.repository.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { emptyStore, STORE_START_MS, type TestStore, testStore } from '../support/stores.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'
import { describeUsageRepository } from './usage-repository.contract.js'

let postgres: TestPostgres
let store: TestStore
let repositories: Repositories

beforeAll(async () => {
  postgres = await startPostgres()
  store = testStore({ url: await postgres.emptyDatabase() })
  const { database } = store
  const usage = new KyselyUsageRepository(database)
  repositories = {
    tasks: new KyselyTaskRepository(database),
    callbacks: new KyselyCallbackRepository(database),
    usageOf: (ownerId) => usage.list({ ownerId, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, limit: 100 }),
  }
}, STORE_START_MS)

beforeEach(() => emptyStore(store))

afterAll(async () => {
  await store.close()
  await postgres.close()
})

describeTaskRepository('PostgreSQL', () => repositories)
describeCallbackRepository('PostgreSQL', () => repositories)
describeUsageRepository('PostgreSQL', () => new KyselyUsageRepository(store.database))
