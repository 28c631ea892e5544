import { expect, it } from '@jest/globals'
import type { TaskChange } from '../../src/tasks/task.repository.js'
import { someSubmitted, START_MS, submitted } from '../support/task-rows.js'
import { usageRecord } from '../support/usage-records.js'
import type { Repositories } from './task-repository.contract.js'

/** What is written with the end of a task; `repositories` is asked anew in each test. */
export function describeEnds(repositories: () => Repositories): void {
  const ended = (taskId: string, given: Partial<TaskChange> = {}): TaskChange => ({
    ...submitted({ from: ['submitted'], state: 'succeed', updatedAtMs: START_MS + 9_000 }),
    usage: usageRecord({ id: `task video ${taskId}`, ownerId: 'key-a', kind: 'task', units: { videos: 1 } }),
    ...given,
  })

  it('what they have used is stored with the end', async () => {
    const { tasks, usageOf } = repositories()
    const id = await someSubmitted(tasks)
    const end = ended(id)
    expect(await tasks.change(id, end)).toBe(true)
    expect(await tasks.byId(id)).toMatchObject({ state: 'succeed' })
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('a second end is not applied, and uses nothing', async () => {
    const { tasks, usageOf } = repositories()
    const id = await someSubmitted(tasks)
    const end = ended(id)
    await tasks.change(id, end)
    const other = usageRecord({ id: 'task video other', ownerId: 'key-a' })
    expect(await tasks.change(id, ended(id, { state: 'failed', usage: other }))).toBe(false)
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('usage that is stored already stays as it is', async () => {
    const { tasks, usageOf } = repositories()
    const [one, two] = [await someSubmitted(tasks), await someSubmitted(tasks)]
    const end = ended(one)
    await tasks.change(one, end)
    const again = usageRecord({ ...end.usage, cost: '77' })
    expect(await tasks.change(two, ended(two, { usage: again }))).toBe(true)
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('nothing of an end is stored when something of it cannot be', async () => {
    const { tasks, usageOf } = repositories()
    const [one, two] = [await someSubmitted(tasks), await someSubmitted(tasks)]
    const { upstreamTaskId = '' } = (await tasks.byId(one)) ?? {}
    await expect(tasks.change(two, ended(two, { upstreamTaskId }))).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(await tasks.byId(two)).toMatchObject({ state: 'submitted' })
    expect(await usageOf('key-a')).toEqual([])
  })
}
