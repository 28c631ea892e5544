import { Inject, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import type { Units } from '../core/request-context.js'
import { type EndedTask, type SettledTask, UsageRecorder } from '../core/usage-record.js'
import { CallbackSender } from './callback-delivery.js'
import { TaskWatchers } from './task-watchers.js'
import { videoTaskPath } from './task.endpoints.js'
import { isTerminal, type Task } from './task.js'
import { type TaskChange, TaskRepository } from './task.repository.js'
import { changed } from './transitions.js'

/** The usage data of a task that has just ended. */
export function endedTask(task: Task): EndedTask {
  return {
    id: `video ${task.id}`,
    ownerId: task.ownerId,
    taskClass: 'video',
    route: videoTaskPath(task.kind),
    model: task.model,
    channelId: task.channelId,
    hasSucceeded: task.state === 'succeed',
    reported: deductions(task.object),
    durationMs: task.updatedAtMs - task.createdAtMs,
  }
}

/** What the upstream has deducted from the account; it writes its numbers as text. */
function deductions(object: string | undefined): Units {
  const {
    final_unit_deduction: units,
    final_balance_deduction: { quota, list_price: listPrice },
  } = fieldsOf(object)
  const balance = { ...figure('quota', quota), ...figure('list_price', listPrice) }
  return {
    ...figure('final_unit_deduction', units),
    ...(Object.keys(balance).length === 0 ? {} : { final_balance_deduction: balance }),
  }
}

interface DeductionFields {
  readonly final_unit_deduction?: unknown
  readonly final_balance_deduction: { readonly quota?: unknown; readonly list_price?: unknown }
}

function fieldsOf(object: string | undefined): DeductionFields {
  const nothing: DeductionFields = { final_balance_deduction: {} }
  try {
    const fields = JSON.parse(object ?? '{}') as Partial<DeductionFields>
    return { ...nothing, ...fields, final_balance_deduction: fields.final_balance_deduction ?? {} }
  } catch {
    return nothing
  }
}

function figure(name: string, value: unknown): Units {
  const number = typeof value === 'string' && /^\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : value
  return typeof number === 'number' ? { [name]: number } : {}
}

/** The part of the callback sender that is used here: a signal without an address. */
export type CallbackQueue = Pick<CallbackSender, 'wake'>

/** Writes changes of tasks with the usage of ended ones, and notifies this process' watchers and callback sender. */
@Injectable()
export class TaskRecorder {
  /** Ends recorded by this process, for the metrics. */
  readonly endedTasks = { succeed: 0, failed: 0 }

  constructor(
    private readonly tasks: TaskRepository,
    private readonly watchers: TaskWatchers,
    @Inject(CallbackSender) private readonly sender: CallbackQueue,
    private readonly usage: UsageRecorder,
  ) {}

  /** The task after the change; undefined when it had been changed meanwhile: then nothing was written. */
  async record(task: Task, change: TaskChange): Promise<Task | undefined> {
    const after = changed(task, change)
    const isWritten = isTerminal(after.state)
      ? await this.end(task.id, change, endedTask(after))
      : await this.tasks.change(task.id, change)
    if (!isWritten) return undefined
    this.watchers.notify(task.id)
    if (change.event !== undefined) this.sender.wake()
    // Counted once over all replicas: a second write of the same end is refused above.
    if (after.state === 'succeed' || after.state === 'failed') this.endedTasks[after.state]++
    return after
  }

  /** In one transaction: a process that is killed leaves neither an end without its usage nor usage without an end. */
  private async end(id: string, change: TaskChange, ended: EndedTask): Promise<boolean> {
    const settled = this.usage.settleTask(ended)
    if (settled?.record === undefined) return this.endUnpaid(id, change, settled)
    try {
      const isWritten = await this.tasks.change(id, { ...change, usage: settled.record })
      if (isWritten) settled.whenWritten()
      return isWritten
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // Accounting never keeps a task from ending: the record goes the way of all records that the store refuses.
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
