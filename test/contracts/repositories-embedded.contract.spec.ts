import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe } from '@jest/globals'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { KyselyUsageRepository } from '../../src/usage/usage.pg.js'
import { dataDirectory, emptyStore, STORE_START_MS, type TestStore, testStore } from '../support/stores.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeKeyRepository, type KeyRepositories, keyRepositories } from './key-repository.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'
import { describeUsageRepository } from './usage-repository.contract.js'

describe('repositories embedded contract', () => {
  let directory: string
  let store: TestStore
  let repositories: Repositories

  beforeAll(async () => {
    directory = await dataDirectory()
    store = testStore({ directory })
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
    await rm(directory, { recursive: true })
  })

  describeTaskRepository('the embedded store', () => repositories)
  describeCallbackRepository('the embedded store', () => repositories)
  describeUsageRepository('the embedded store', () => new KyselyUsageRepository(store.database))
})

describe('keys embedded contract', () => {
  let directory: string
  let store: TestStore
  let repositories: KeyRepositories

  beforeAll(async () => {
    directory = await dataDirectory()
    store = testStore({ directory })
    await store.database.open()
  }, STORE_START_MS)

  beforeEach(async () => {
    repositories = await keyRepositories(store)
  })

  afterAll(async () => {
    await store.close()
    await rm(directory, { recursive: true })
  })

  describeKeyRepository('the embedded store', () => repositories)
})
