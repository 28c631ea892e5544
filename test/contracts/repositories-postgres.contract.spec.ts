import { startPostgres, testStore } from '../support/stores.js'
import { describeRepositories } from './repositories.contract.js'

describeRepositories('PostgreSQL', async () => {
  const postgres = await startPostgres()
  const store = testStore({ url: await postgres.emptyDatabase() })
  return {
    store,
    close: async () => {
      await store.close()
      await postgres.close()
    },
  }
})
