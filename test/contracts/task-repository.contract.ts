import { describe } from '@jest/globals'
import type { TaskRepository } from '../../src/tasks/task.repository.js'
import type { CallbackRepository } from '../../src/tasks/callback.repository.js'
import { describeIntents } from './task-repository-intents.contract.js'
import { describeLookups } from './task-repository-lookups.contract.js'
import { describeQueue } from './task-repository-queue.contract.js'

/** Empty repositories on one store; the same objects for all tests of a suite. */
export interface Repositories {
  readonly tasks: TaskRepository
  readonly callbacks: CallbackRepository
}

/** What every store of tasks does, wherever its rows lie; `repositories` is asked anew in each test. */
export function describeTaskRepository(name: string, repositories: () => Repositories): void {
  describe(`tasks in ${name}`, () => {
    describe('when a create is recorded', () => {
      describeIntents(repositories)
    })
    describe('when they are worked on', () => {
      describeQueue(repositories)
    })
    describe('when they are looked for', () => {
      describeLookups(repositories)
    })
  })
}
