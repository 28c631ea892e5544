import type { NewTask, TaskChange, TaskRepository } from '../../src/tasks/task.repository.js'

/** Some Unix time in milliseconds that all rows begin at. */
export const START_MS = 1_800_000_000_000
export const DAY_MS = 86_400_000

let taskCount = 0

/** An intent unlike any other, but for what is given. */
export function someTask(given: Partial<NewTask> = {}): NewTask {
  taskCount += 1
  return {
    id: `task-${taskCount}`,
    kind: 'text2video',
    ownerId: 'key-a',
    channelId: 'vidgen-main',
    model: 'vidgen-v1-6',
    upstreamExternalId: `prefix.${taskCount}`,
    callbackToken: `token-${taskCount}`,
    createdAtMs: START_MS + taskCount,
    lockedUntilMs: START_MS + 60_000,
    deadlineAtMs: START_MS + DAY_MS,
    ...given,
  }
}

/** What a create that went well is followed by. */
export const submitted = (given: Partial<TaskChange> = {}): TaskChange => ({
  from: ['creating', 'unknown'],
  state: 'submitted',
  upstreamTaskId: `upstream-${(taskCount += 1)}`,
  object: '{"task_status":"submitted"}',
  nextPollAtMs: START_MS + 5_000,
  polls: 0,
  misses: 0,
  updatedAtMs: START_MS + 1_000,
  deadlineAtMs: START_MS + DAY_MS,
  ...given,
})

/** Records an intent and its good end; resolves with our id. */
export async function someSubmitted(
  tasks: TaskRepository,
  given: Partial<NewTask> = {},
  change: Partial<TaskChange> = {},
): Promise<string> {
  const task = someTask(given)
  await tasks.recordIntent(task)
  await tasks.change(task.id, submitted(change))
  return task.id
}
