import { beforeEach, describe } from '@jest/globals'
import { localStore } from '../../src/limits/key-limiter.js'
import { MemoryBackgroundResponses } from '../support/memory-background-responses.js'
import { MemoryKeptResponses } from '../support/memory-kept-responses.js'
import { memoryRepositories } from '../support/memory-tasks.js'
import { describeBackgroundResponses } from './background-responses.contract.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeKeptResponses } from './kept-responses.contract.js'
import { limitStoreContract } from './limit-store.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'

describe('repositories memory contract', () => {
  let repositories: Repositories

  beforeEach(() => {
    repositories = memoryRepositories()
  })

  // What the tests of the engine rely on is no kinder than the real stores.
  describeTaskRepository('memory', () => repositories)
  describeCallbackRepository('memory', () => repositories)
  describeKeptResponses('memory', () => new MemoryKeptResponses())
  describeBackgroundResponses('memory', () => {
    const responses = new MemoryBackgroundResponses()
    return {
      responses,
      recordsOf: () => Promise.resolve([...responses.records.keys()]),
      pinnedOf: (_ownerId, ids) =>
        Promise.resolve([...responses.pinned.values()].flat().filter((id) => ids.includes(id))),
    }
  })
})

describe('limit store memory contract', () => {
  limitStoreContract('in one process', () => {
    const { counters: ledger, close } = localStore(1)
    return Promise.resolve({ one: ledger, other: ledger, close })
  })
})
