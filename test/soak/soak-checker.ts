import { callbackFaults } from './callback-rules.js'
import { createFaults, readingFaults } from './create-rules.js'
import { orderFaults } from './order-rules.js'
import type { SoakRecords } from './soak-records.js'

/** Every broken promise, in words; empty when all were kept. */
export const findViolations = (records: SoakRecords): readonly string[] => [
  ...createFaults(records),
  ...readingFaults(records),
  ...orderFaults(records),
  ...callbackFaults(records),
  ...storeFaults(records),
  ...records.processFaults,
]

const ENDED: ReadonlySet<string> = new Set(['succeed', 'failed'])

/** By the end every create has been cleared up and every task has ended, as its upstream's has. */
function storeFaults({ store }: SoakRecords): readonly string[] {
  const open = Object.entries(store.states).filter(([state, count]) => !ENDED.has(state) && count > 0)
  const faults = open.map(([state, count]) => `the store still has ${count} tasks in the state ${state}`)
  return store.waitingEvents === 0
    ? faults
    : [...faults, `the store still has ${store.waitingEvents} events to deliver`]
}
