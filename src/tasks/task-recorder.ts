import { Inject, Injectable } from '@nestjs/common'
import { UsageRecorder } from '../common/usage/usage-recorder.js'
import { CallbackSender } from './callback-sender.js'
import { endedTask } from './ended-task.js'
import { changed } from './task-change.js'
import { TaskWatchers } from './task-watchers.js'
import { type TaskChange, TaskRepository } from './task.repository.js'
import { isTerminal, type Task } from './task.js'

/** Who sends events: it need not be told which, only that there are some. */
export type EventSender = Pick<CallbackSender, 'wake'>

/** Writes changes of tasks, and tells those in this process who wait for them. */
@Injectable()
export class TaskRecorder {
  /** Ends that were recorded by this process. */
  readonly endedTasks = { succeed: 0, failed: 0 }

  constructor(
    private readonly tasks: TaskRepository,
    private readonly watchers: TaskWatchers,
    @Inject(CallbackSender) private readonly sender: EventSender,
    private readonly usage: UsageRecorder,
  ) {}

  /** The task after the change; undefined when somebody else has changed it before: then nothing was written. */
  async record(task: Task, change: TaskChange): Promise<Task | undefined> {
    if (!(await this.tasks.change(task.id, change))) return undefined
    this.watchers.announce(task.id)
    if (change.event !== undefined) this.sender.wake()
    const ended = changed(task, change)
    // Whoever made the change is told so once: no other replica records the same end.
    if (ended.state === 'succeed' || ended.state === 'failed') this.endedTasks[ended.state]++
    if (isTerminal(ended.state)) this.usage.taskEnded(endedTask(ended))
    return ended
  }
}
