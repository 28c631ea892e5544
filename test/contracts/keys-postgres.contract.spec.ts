import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { STORE_START_MS, type TestStore, testStore } from '../support/stores.js'
import { describeKeyRepository, type KeyRepositories } from './key-repository.contract.js'
import { keyRepositories } from './key-rows.js'

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
