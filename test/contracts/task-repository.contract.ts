import { describe } from '@jest/globals'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { CallbackRepository } from '../../src/tasks/callback.repository.js'
import type { TaskRepository } from '../../src/tasks/task.repository.js'
import { describeEnds } from './task-repository-ends.contract.js'
import { describeIntents } from './task-repository-intents.contract.js'
import { describeLookups } from './task-repository-lookups.contract.js'
import { describeQueue } from './task-repository-queue.contract.js'

/** Empty repositories on one store; the same objects for all tests of a suite. */
export interface Repositories {
  readonly tasks: TaskRepository
  readonly callbacks: CallbackRepository
  /** What the store has of one owner's usage. */
  readonly usageOf: (ownerId: string) => Promise<readonly UsageRecord[]>
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
    describe('when they end', () => {
      describeEnds(repositories)
    })
    describe('when they are looked for', () => {
      describeLookups(repositories)
    })
  })
}
