import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import type { TaskRefresh } from './refresh-task.js'
import type { RescheduleBatch } from './reschedule-batch.js'
import type { Observation } from './task-verdict.js'
import { isTerminal, type Task } from './task.js'

/** Polls single tasks and sees to it that what comes of them is written. */
export class PollWork {
  private readonly calls = new Set<Call>()

  /** `onFreed` is called when a task that goes on has been given back: it may be due at once, its upstream having called. */
  constructor(
    private readonly refresh: TaskRefresh,
    private readonly batch: RescheduleBatch,
    private readonly onFreed: () => void,
  ) {}

  /** One poll of a task that is leased to this process. Never rejects: one bad task must not stop the others. */
  async poll(task: Task): Promise<void> {
    const call = new Call(`task-${task.id}`, 'POLL', `/vidgen/v1/videos/${task.kind}`, performance.now())
    call.caller = { keyId: 'gateway' }
    this.calls.add(call)
    try {
      const observation = await this.refresh.look(task, call)
      if (call.departure.left) this.release(task)
      else await this.settle(task, observation, call)
    } finally {
      this.calls.delete(call)
    }
  }

  /** Gives the lease back; nothing was learnt. */
  release({ id, nextPollAtMs, polls, misses }: Task): void {
    this.batch.add({ id, nextPollAtMs, polls, misses })
  }

  /** Ends the polls under way at once. */
  cut(): void {
    for (const { departure } of this.calls) departure.announce()
  }

  private async settle(task: Task, observation: Observation, call: Call): Promise<void> {
    try {
      await this.write(task, observation, call)
    } catch (error) {
      // Without a store there is nothing to be done: the lease runs out.
      if (error instanceof GatewayError && error.kind === 'overloaded') return
      await this.write(task, this.refresh.failed(task, error, call), call).catch(() => undefined)
    }
  }

  private async write(task: Task, observation: Observation, call: Call): Promise<void> {
    const refreshed = await this.refresh.settle(task, observation, call)
    if (refreshed.reschedule !== undefined) this.batch.add(refreshed.reschedule)
    else if (refreshed.task === undefined || !isTerminal(refreshed.task.state)) this.onFreed()
  }
}
