import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { pino } from 'pino'
import { eventually } from '../../test/support/eventually.js'
import { callOf, taskLab, type TaskLab } from '../../test/support/task-lab.js'
import { TaskRetention } from './task-retention.js'

const DAY_MS = 86_400_000

const running: TaskRetention[] = []

afterEach(async () => {
  jest.useRealTimers()
  for (const retention of running.splice(0)) await retention.stop()
})

function retentionOf({ store, config, clock }: TaskLab): TaskRetention {
  const retention = new TaskRetention(store.tasks, config, clock, pino({ level: 'silent' }))
  running.push(retention)
  return retention
}

async function ended(lab: TaskLab, count: number, key = 'key'): Promise<void> {
  lab.upstream.firstStatus = 'succeed'
  for (let number = 0; number < count; number++) {
    await lab.engine.create(lab.order({ idempotencyKey: `${key}-${number}` }), callOf())
  }
}

const count = async (lab: TaskLab): Promise<number> => (await lab.store.tasks.countByState()).succeed ?? 0

describe('Ended tasks', () => {
  it('are forgotten after thirty days, however many there are, and not before', async () => {
    const lab = taskLab()
    await ended(lab, 1200)
    lab.clock.advance(30 * DAY_MS)
    await ended(lab, 1, 'late')
    const early = retentionOf(lab)
    early.start()
    await early.stop()
    expect(await count(lab)).toBe(1201)
    lab.clock.advance(1)
    retentionOf(lab).start()
    await eventually(async () => (await count(lab)) === 1)
  })

  it('are looked for every hour', async () => {
    const lab = taskLab({ sections: { tasks: { retentionMs: 1 } } })
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'performance', 'nextTick', 'queueMicrotask'] })
    retentionOf(lab).start()
    await ended(lab, 1)
    lab.clock.advance(2)
    jest.advanceTimersByTime(3_599_999)
    expect(await count(lab)).toBe(1)
    jest.advanceTimersByTime(1)
    await eventually(async () => (await count(lab)) === 0)
  })

  it('stay when the store is away, until the next time', async () => {
    const lab = taskLab()
    await ended(lab, 1)
    lab.clock.advance(31 * DAY_MS)
    lab.store.setReachable(false)
    const unlucky = retentionOf(lab)
    unlucky.start()
    await unlucky.stop()
    lab.store.setReachable(true)
    expect(await count(lab)).toBe(1)
    retentionOf(lab).start()
    await eventually(async () => (await count(lab)) === 0)
  })
})

describe('Tasks that have not ended', () => {
  it('are never forgotten', async () => {
    const lab = taskLab()
    await lab.engine.create(lab.order(), callOf())
    lab.clock.advance(1000 * DAY_MS)
    const retention = retentionOf(lab)
    retention.start()
    await retention.stop()
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })
})
