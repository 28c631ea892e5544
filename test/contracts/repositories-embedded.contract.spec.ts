import { rm } from 'node:fs/promises'
import { dataDirectory, testStore } from '../support/stores.js'
import { describeRepositories } from './repositories.contract.js'

describeRepositories('the embedded store', async () => {
  const directory = await dataDirectory()
  const store = testStore({ directory })
  return {
    store,
    close: async () => {
      await store.close()
      await rm(directory, { recursive: true })
    },
  }
})
