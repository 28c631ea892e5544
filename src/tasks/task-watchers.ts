import { Injectable, Optional } from '@nestjs/common'
import type { RequestContext } from '../core/request-context.js'
import { isTerminal, type Task } from './task.js'

/** Changes made by other replicas are found by reading the task anew. */
const REREAD_MS = 2000

export type ReadTask = () => Promise<Task | undefined>

/** Follows single tasks: told by changes of this process, and reading anew for those of others. */
@Injectable()
export class TaskWatchers {
  private readonly listeners = new Map<string, Set<() => void>>()

  /** The time is given by tests only. */
  constructor(@Optional() private readonly rereadMs: number = REREAD_MS) {}

  notify(taskId: string): void {
    for (const listener of [...(this.listeners.get(taskId) ?? [])]) listener()
  }

  /** Calls back with the task at once and at every change; resolves when it has ended, is gone, or the caller left. */
  async watch(task: Task, call: RequestContext, read: ReadTask, onChange: (task: Task) => void): Promise<void> {
    const sign = new Sign(this.rereadMs)
    const forgetTask = this.listen(task.id, sign.give)
    const forgetCaller = call.disconnect.onAbort(sign.give)
    try {
      let shown = task
      onChange(shown)
      while (!isTerminal(shown.state)) {
        await sign.given()
        if (call.disconnect.aborted) return
        // A store that is away for a while is no reason to end a stream.
        const current = await read().catch(() => shown)
        if (current === undefined) return
        if (current.state === shown.state && current.object === shown.object) continue
        shown = current
        onChange(shown)
      }
    } finally {
      forgetTask()
      forgetCaller()
    }
  }

  private listen(taskId: string, listener: () => void): () => void {
    const listeners = this.listeners.get(taskId) ?? new Set()
    this.listeners.set(taskId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.listeners.delete(taskId)
    }
  }
}

/** Given by events or by time; one that comes while nobody waits is kept. */
class Sign {
  private isGiven = false
  private wake: () => void = () => undefined

  constructor(private readonly patienceMs: number) {}

  readonly give = (): void => {
    this.isGiven = true
    this.wake()
  }

  async given(): Promise<void> {
    if (!this.isGiven) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.patienceMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.isGiven = false
  }
}
