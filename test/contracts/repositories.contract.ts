import { beforeEach, describe } from '@jest/globals'
import { KyselyBackgroundResponses } from '../../src/responses/background-responses.pg.js'
import { KyselyKeptResponses } from '../../src/responses/kept-responses.pg.js'
import { KyselyResponsePins } from '../../src/responses/response-pins.pg.js'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { KyselyUsageRepository } from '../../src/usage/usage.pg.js'
import { shareLab } from '../support/lab-lifetime.js'
import { emptyStore, type TestStore } from '../support/stores.js'
import { describeBackgroundResponses } from './background-responses.contract.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeKeptResponses } from './kept-responses.contract.js'
import { describeKeyRepository, type KeyRepositories, keyRepositories } from './key-repository.contract.js'
import { describeResponsePins } from './response-pins.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'
import { describeUsageRepository } from './usage-repository.contract.js'

export interface StoreLab {
  readonly store: TestStore
  close(): Promise<void>
}

/** The contracts of all repositories on one kind of store. */
export function describeRepositories(name: string, start: () => Promise<StoreLab>): void {
  describe(`repositories in ${name}`, () => {
    let lab: StoreLab
    shareLab(async () => (lab = await start()))
    beforeEach(() => emptyStore(lab.store))

    const repositories = (): Repositories => {
      const { database } = lab.store
      const usage = new KyselyUsageRepository(database)
      return {
        tasks: new KyselyTaskRepository(database),
        callbacks: new KyselyCallbackRepository(database),
        usageOf: (ownerId) => usage.list({ ownerId, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, limit: 100 }),
      }
    }
    describeTaskRepository(name, repositories)
    describeCallbackRepository(name, repositories)
    describeUsageRepository(name, () => new KyselyUsageRepository(lab.store.database))
    describeResponsePins(name, () => new KyselyResponsePins(lab.store.database))
    describeKeptResponses(name, () => new KyselyKeptResponses(lab.store.database))
    describeBackgroundResponses(name, () => {
      const { database } = lab.store
      const { usageOf } = repositories()
      const pins = new KyselyResponsePins(database)
      return {
        responses: new KyselyBackgroundResponses(database),
        recordsOf: async (ownerId) => (await usageOf(ownerId)).map(({ id }) => id),
        pinnedOf: async (ownerId, ids) => [...(await pins.channelsOf(ownerId, ids)).keys()],
      }
    })

    describe('keys', () => {
      let keys: KeyRepositories
      beforeEach(async () => {
        keys = await keyRepositories(lab.store)
      })
      describeKeyRepository(name, () => keys)
    })
  })
}
