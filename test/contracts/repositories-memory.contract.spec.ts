import { beforeEach } from '@jest/globals'
import { memoryRepositories } from '../support/memory-repositories.js'
import { describeCallbackRepository } from './callback-repository.contract.js'
import { describeTaskRepository, type Repositories } from './task-repository.contract.js'

let repositories: Repositories

beforeEach(() => {
  repositories = memoryRepositories()
})

// What the tests of the engine rely on is no kinder than the real stores.
describeTaskRepository('memory', () => repositories)
describeCallbackRepository('memory', () => repositories)
