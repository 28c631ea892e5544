import type { Task, TaskState } from '../../src/tasks/task.js'
import { eventually } from './eventually.js'
import { callOf, taskLab, type TaskLab, type TaskLabOptions } from './task-lab.js'

/** Labs whose pollers run. */
const running: TaskLab[] = []

/** One whose poller runs until `stopLabs`. */
export function startedLab(options?: TaskLabOptions): TaskLab {
  const lab = taskLab(options)
  running.push(lab)
  lab.poller.start()
  return lab
}

export async function stopLabs(): Promise<void> {
  for (const lab of running.splice(0)) await lab.poller.stop()
}

/** Creates `order-0`, `order-1` and so on; refused and lost ones are left to the test. */
export async function make(lab: TaskLab, count: number, changes: object = {}): Promise<void> {
  for (let number = 0; number < count; number++) {
    await lab.engine
      .create(lab.order({ externalTaskId: `order-${number}`, ...changes }), callOf())
      .catch(() => undefined)
  }
}

/** Lets time pass and the poller rise. */
export function pass(lab: TaskLab, milliseconds: number): void {
  lab.clock.advance(milliseconds)
  for (const other of running) other.alarm.wake()
}

/** The same, until it has looked for work. */
export async function passRound(lab: TaskLab, milliseconds: number): Promise<void> {
  const { claims } = lab.store.tasks
  pass(lab, milliseconds)
  await eventually(() => lab.store.tasks.claims > claims)
}

export const counts = (lab: TaskLab): Promise<Readonly<Partial<Record<TaskState, number>>>> =>
  lab.store.tasks.countByState()

/** Lets time pass, poll by poll, until all tasks are in the state. */
export async function passUntil(lab: TaskLab, state: TaskState, count: number, stepMs = 1000): Promise<void> {
  await eventually(async () => {
    if (((await counts(lab))[state] ?? 0) >= count) return true
    await passRound(lab, stepMs)
    return false
  })
}

export const taskOf = async (lab: TaskLab, externalId: string): Promise<Task | undefined> =>
  lab.store.tasks.find('team-a', 'text2video', externalId)
