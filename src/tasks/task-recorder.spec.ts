import { beforeEach, describe, expect, it } from '@jest/globals'
import { CollectedUsage } from '../../test/support/collected-usage.js'
import { type MemoryRepositories, memoryRepositories } from '../../test/support/memory-repositories.js'
import { someSubmitted, submitted } from '../../test/support/task-rows.js'
import type { SettledTask } from '../core/usage-recorder.js'
import { TaskRecorder } from './record-task.js'
import { TaskWatchers } from './task-watchers.js'
import type { Task } from './task.js'
import type { TaskChange, TaskRepository } from './task.repository.js'

let store: MemoryRepositories
let usage: CollectedUsage
let wakes: number

beforeEach(() => {
  store = memoryRepositories()
  usage = new CollectedUsage()
  wakes = 0
})

const recorderOf = (tasks: TaskRepository = store.tasks): TaskRecorder =>
  new TaskRecorder(tasks, new TaskWatchers(60_000), { wake: () => wakes++ }, usage)

async function someTask(): Promise<Task> {
  const task = await store.tasks.byId(await someSubmitted(store.tasks))
  if (task === undefined) throw new Error('there is no task')
  return task
}

const end = ({ upstreamTaskId = '' }: Task, given: Partial<TaskChange> = {}): TaskChange =>
  submitted({ from: ['submitted'], state: 'succeed', upstreamTaskId, ...given })

const paid = async (): Promise<string[]> => (await store.usageOf('team-a')).map(({ id }) => id)

describe('The end of a task', () => {
  it('is written with what the task has used, which then counts', async () => {
    const task = await someTask()
    expect(await recorderOf().record(task, end(task))).toMatchObject({ state: 'succeed' })
    expect(await paid()).toEqual([`task video ${task.id}`])
    expect(usage.settled).toMatchObject([{ id: `video ${task.id}`, hasSucceeded: true }])
  })

  it('that somebody else wrote before uses nothing, and counts for nobody else', async () => {
    const task = await someTask()
    const [one, two] = [recorderOf(), recorderOf()]
    await one.record(task, end(task))
    expect(await two.record(task, end(task, { state: 'failed' }))).toBeUndefined()
    expect(await paid()).toHaveLength(1)
    expect([usage.settled.length, two.endedTasks.failed]).toEqual([1, 0])
  })

  it('is not written while the store is away, nor is what was used', async () => {
    const task = await someTask()
    store.setReachable(false)
    await expect(recorderOf().record(task, end(task))).rejects.toMatchObject({ kind: 'overloaded' })
    store.setReachable(true)
    expect([await paid(), usage.tasks]).toEqual([[], []])
  })

  it('is written without a record that no store takes, which goes the way of all others', async () => {
    const task = await someTask()
    const changes: TaskChange[] = []
    const change = (id: string, wanted: TaskChange): Promise<boolean> => {
      changes.push(wanted)
      if (wanted.usage !== undefined) return Promise.reject(Object.assign(new Error('no text'), { code: '22021' }))
      return store.tasks.change(id, wanted)
    }
    const picky = Object.assign(Object.create(store.tasks) as TaskRepository, { change })
    expect(await recorderOf(picky).record(task, end(task))).toMatchObject({ state: 'succeed' })
    expect(changes).toHaveLength(2)
    expect([await paid(), usage.settled]).toEqual([[], []])
    expect(usage.tasks).toMatchObject([{ id: `video ${task.id}` }])
  })

  it.each<[string, (settled: SettledTask) => SettledTask | undefined, number]>([
    ['usage is not stored', (settled) => ({ ...settled, record: undefined }), 1],
    ['nothing can be made of it', () => undefined, 0],
  ])('is written where %s', async (_why, change, counted) => {
    const task = await someTask()
    const settle = usage.settleTask.bind(usage)
    usage.settleTask = (ended) => change(settle(ended)) as SettledTask
    expect(await recorderOf().record(task, end(task))).toMatchObject({ state: 'succeed' })
    expect([await paid(), usage.settled.length]).toEqual([[], counted])
  })
})

describe('A change that is no end', () => {
  it('uses nothing', async () => {
    const task = await someTask()
    const recorder = recorderOf()
    expect(await recorder.record(task, end(task, { state: 'processing' }))).toMatchObject({ state: 'processing' })
    expect([usage.tasks, await paid(), recorder.endedTasks]).toEqual([[], [], { succeed: 0, failed: 0 }])
  })
})
