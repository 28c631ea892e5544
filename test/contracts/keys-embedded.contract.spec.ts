import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import { dataDirectory, STORE_START_MS, type TestStore, testStore } from '../support/stores.js'
import { describeKeyRepository, type KeyRepositories } from './key-repository.contract.js'
import { keyRepositories } from './key-rows.js'

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
