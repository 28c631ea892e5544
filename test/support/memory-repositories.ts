import type { UsageRecord } from '../../src/core/usage-record.js'
import { MemoryCallbackRepository } from './memory-callbacks.js'
import { MemoryStore } from './memory-store.js'
import { MemoryTaskRepository } from './memory-tasks.js'

/** The two repositories over one store in memory, which obeys the same rules as the one in the database. */
export interface MemoryRepositories {
  readonly tasks: MemoryTaskRepository
  readonly callbacks: MemoryCallbackRepository
  /** Written with the ends of tasks. */
  readonly usageOf: (ownerId: string) => Promise<readonly UsageRecord[]>
  /** False makes every call reject with `overloaded`. */
  readonly setReachable: (isReachable: boolean) => void
  /** How many calls were rejected because of that. */
  readonly refusals: () => number
}

export function memoryRepositories(): MemoryRepositories {
  const store = new MemoryStore()
  return {
    tasks: new MemoryTaskRepository(store),
    callbacks: new MemoryCallbackRepository(store),
    usageOf: (ownerId) => Promise.resolve([...store.usage.values()].filter((record) => record.ownerId === ownerId)),
    setReachable: (isReachable) => {
      store.isReachable = isReachable
    },
    refusals: () => store.refusals,
  }
}
