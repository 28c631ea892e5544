import { Inject, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { type EndedTask, type SettledTask, UsageRecorder } from '../core/usage-recorder.js'
import { CallbackSender } from './callback-delivery.js'
import { endedTask } from './ended-task.js'
import { TaskWatchers } from './task-watchers.js'
import { isTerminal, type Task } from './task.js'
import { type TaskChange, TaskRepository } from './task.repository.js'
import { changed } from './transitions.js'

/** Who sends events: it need not be told which, only that there are some. */
export type EventSender = Pick<CallbackSender, 'wake'>

/** Writes changes of tasks, and what ended ones have used with them; tells those in this process who wait for them. */
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
    const after = changed(task, change)
    const isWritten = isTerminal(after.state)
      ? await this.end(task.id, change, endedTask(after))
      : await this.tasks.change(task.id, change)
    if (!isWritten) return undefined
    this.watchers.announce(task.id)
    if (change.event !== undefined) this.sender.wake()
    // Whoever made the change is told so once: no other replica records the same end.
    if (after.state === 'succeed' || after.state === 'failed') this.endedTasks[after.state]++
    return after
  }

  /** In one transaction: a process that is killed leaves neither an end that nobody pays nor a payment without an end. */
  private async end(id: string, change: TaskChange, ended: EndedTask): Promise<boolean> {
    const settled = this.usage.settleTask(ended)
    if (settled?.record === undefined) return this.endUnpaid(id, change, settled)
    try {
      const isWritten = await this.tasks.change(id, { ...change, usage: settled.record })
      if (isWritten) settled.whenWritten()
      return isWritten
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // Accounting never keeps a task from ending: a record that no store takes is told of where all such are.
      const isWritten = await this.endUnpaid(id, change, undefined)
      if (isWritten) this.usage.taskEnded(ended)
      return isWritten
    }
  }

  private async endUnpaid(id: string, change: TaskChange, settled: SettledTask | undefined): Promise<boolean> {
    const isWritten = await this.tasks.change(id, change)
    if (isWritten) settled?.whenWritten()
    return isWritten
  }
}
