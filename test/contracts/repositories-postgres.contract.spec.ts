import { afterAll, beforeAll, beforeEach, describe } from '@jest/globals'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { KyselyUsageRepository } from '../../src/usage/usage.pg.js'
import {
  emptyStore,
  startPostgres,
  STORE_START_MS,
  type TestPostgres,
  type TestStore,
  testStore,
} from '../support/stores.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeKeyRepository, type KeyRepositories, keyRepositories } from './key-repository.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'
import { describeUsageRepository } from './usage-repository.contract.js'

describe('repositories postgres contract', () => {
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
})

describe('keys postgres contract', () => {
  let postgres: TestPostgres
  let store: TestStore
  let repositories: KeyRepositories

  beforeAll(async () => {
    postgres = await startPostgres()
    store = testStore({ url: await postgres.emptyDatabase() })
  }, STORE_START_MS)

  beforeEach(async () => {
    repositories = await keyRepositories(store)
  })

  afterAll(async () => {
    await store.close()
    await postgres.close()
  })

  describeKeyRepository('PostgreSQL', () => repositories)
})
