import { Inject, Injectable } from '@nestjs/common'
import { CallbackSender } from './callback-sender.js'
import { changed } from './task-change.js'
import { TaskWatchers } from './task-watchers.js'
import { type TaskChange, TaskRepository } from './task.repository.js'
import type { Task } from './task.js'

/** Who sends events: it need not be told which, only that there are some. */
export type EventSender = Pick<CallbackSender, 'wake'>

/** Writes changes of tasks, and tells those in this process who wait for them. */
@Injectable()
export class TaskRecorder {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly watchers: TaskWatchers,
    @Inject(CallbackSender) private readonly sender: EventSender,
  ) {}

  /** The task after the change; undefined when somebody else has changed it before: then nothing was written. */
  async record(task: Task, change: TaskChange): Promise<Task | undefined> {
    if (!(await this.tasks.change(task.id, change))) return undefined
    this.watchers.announce(task.id)
    if (change.event !== undefined) this.sender.wake()
    return changed(task, change)
  }
}
