import type { Call } from '../core/request-context.js'
import { type Follow, followingFailure, TaskEvents } from '../dialects/task-response.js'
import type { Task } from '../tasks/task.js'
import type { Tasks } from '../tasks/tasks.js'

/** A task's changes as an event stream: the first time at once, then at each change, up to the terminal state. */
export const videoTaskEvents = (tasks: Tasks, task: Task, call: Call): TaskEvents =>
  new TaskEvents(followed(tasks, task, call), call)

function followed(tasks: Tasks, task: Task, call: Call): Follow {
  return (listener) => {
    tasks
      .watch(task, call, ({ object }) => {
        if (object !== undefined) listener.changed({ object })
      })
      .then(
        () => {
          listener.ended()
        },
        (error: unknown) => {
          listener.failed(followingFailure(error))
        },
      )
    // A watch ends with its call.
    return () => undefined
  }
}
