import { Injectable, Optional } from '@nestjs/common'
import type { RequestContext } from '../core/request-context.js'
import { isTerminal, type Task } from './task.js'

/** Interval of reads for changes made by other replicas. */
const REREAD_MS = 2000

export type ReadTask = () => Promise<Task | undefined>

/** Watches single tasks: notified of changes by this process, and by polling the store for those of other replicas. */
@Injectable()
export class TaskWatchers {
  private readonly listeners = new Map<string, Set<() => void>>()

  /** The interval is set by tests only. */
  constructor(@Optional() private readonly rereadMs: number = REREAD_MS) {}

  notify(taskId: string): void {
    for (const listener of [...(this.listeners.get(taskId) ?? [])]) listener()
  }

  /**
   * Calls back with the task at once and at every change; resolves when it has ended, is deleted, or the client has
   * disconnected.
   */
  async watch(task: Task, call: RequestContext, read: ReadTask, onChange: (task: Task) => void): Promise<void> {
    const signal = new Signal(this.rereadMs)
    const removeTaskListener = this.listen(task.id, signal.set)
    const removeDisconnectListener = call.disconnect.onAbort(signal.set)
    try {
      let latest = task
      onChange(latest)
      while (!isTerminal(latest.state)) {
        await signal.wait()
        if (call.disconnect.aborted) return
        // An outage of the store does not end the stream.
        const current = await read().catch(() => latest)
        if (current === undefined) return
        if (current.state === latest.state && current.object === latest.object) continue
        latest = current
        onChange(latest)
      }
    } finally {
      removeTaskListener()
      removeDisconnectListener()
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

/** A signal by event or timeout; one that is given while nothing waits is kept. */
class Signal {
  private isSet = false
  private wake: () => void = () => undefined

  constructor(private readonly timeoutMs: number) {}

  readonly set = (): void => {
    this.isSet = true
    this.wake()
  }

  async wait(): Promise<void> {
    if (!this.isSet) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.timeoutMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.isSet = false
  }
}
