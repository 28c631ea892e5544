import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals'
import { dataDirectory, STORE_START_MS, testStore } from '../../test/support/stores.js'
import { someSubmitted, someTask, START_MS } from '../../test/support/task-rows.js'
import { KyselyCallbackRepository } from '../tasks/callback.pg.js'
import { KyselyTaskRepository } from '../tasks/task.pg.js'

jest.setTimeout(STORE_START_MS)

const CLAIM = {
  nowMs: START_MS + 10_000,
  lockedUntilMs: START_MS + 70_000,
  limit: 10,
  exceptChannels: [],
  exceptHosts: [],
}

let directory: string

beforeAll(async () => {
  directory = await dataDirectory()
})

afterAll(() => rm(directory, { recursive: true }))

it('What a process that is gone had leased is given out at once by the next one', async () => {
  const first = testStore({ directory })
  const tasks = new KyselyTaskRepository(first.database)
  const polled = await someSubmitted(tasks)
  const told = await someSubmitted(tasks, { callbackUrl: 'https://receiver.example/hook' })
  const ended = { from: ['submitted'], state: 'succeed', nextPollAtMs: 0, polls: 0, misses: 0, updatedAtMs: 1 } as const
  const event = { webhookId: 'msg_1', body: '{}', nextAttemptAtMs: START_MS }
  await tasks.change(told, { ...ended, deadlineAtMs: START_MS, event })
  expect(await new KyselyCallbackRepository(first.database).claimDue(CLAIM)).toHaveLength(1)
  expect(await tasks.claimDue(CLAIM)).toHaveLength(1)
  const created = someTask({ lockedUntilMs: START_MS + 600_000 })
  await tasks.recordIntent(created)
  expect(await tasks.claimDue(CLAIM)).toEqual([])
  await first.close()

  const second = testStore({ directory })
  const claimed = await new KyselyTaskRepository(second.database).claimDue(CLAIM)
  expect(claimed.map(({ id }) => id).sort()).toEqual([created.id, polled].sort())
  expect(await new KyselyCallbackRepository(second.database).claimDue(CLAIM)).toMatchObject([{ webhookId: 'msg_1' }])
  await second.close()
})
