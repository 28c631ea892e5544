import type { GatewayError } from '../core/gateway-error.js'
import { followingFailure, type TaskListener } from '../dialects/task-response.js'
import type { UpstreamImageTask } from '../providers/image.contract.js'

/** In a row; until then a stream waits for better times. */
const TOLERATED_FAILURES = 2

export interface WatchPlan {
  /** Asks for the task once. */
  readonly look: () => Promise<UpstreamImageTask>
  /** Between an answer and the next question. */
  readonly pauseMs: () => number
  /** Called once, when nobody follows any more or there is nothing left to follow. */
  readonly close: () => void
}

/**
 * Follows one task for everyone who wants to know of it: never more than one question is under way. Ends with the task,
 * with its last listener, when the first look fails, or when several in a row do.
 */
export class TaskWatch {
  private readonly listeners = new Set<TaskListener>()
  private shown: UpstreamImageTask | undefined
  private failures = 0
  private timer: NodeJS.Timeout | undefined
  private isOver = false

  constructor(private readonly plan: WatchPlan) {}

  /** Tells the task at once when it is known, then at every change. Returns the way to stop. */
  add(listener: TaskListener): () => void {
    const isFirst = this.listeners.size === 0
    this.listeners.add(listener)
    if (this.shown !== undefined) listener.changed(this.shown)
    if (isFirst) void this.look()
    return () => {
      this.listeners.delete(listener)
      if (this.listeners.size === 0) this.close()
    }
  }

  private async look(): Promise<void> {
    const outcome = await this.plan.look().then(
      (task) => ({ task }),
      (error: unknown) => ({ error: followingFailure(error) }),
    )
    if (this.isOver) return
    if ('task' in outcome) this.note(outcome.task)
    else this.noteFailure(outcome.error)
  }

  private note(task: UpstreamImageTask): void {
    const isNews = this.shown === undefined || hasChanged(this.shown, task)
    this.failures = 0
    this.shown = task
    if (isNews) for (const listener of [...this.listeners]) listener.changed(task)
    if (!task.isTerminal) this.lookAfter(this.plan.pauseMs())
    else {
      this.finish((listener) => {
        listener.ended()
      })
    }
  }

  private noteFailure(error: GatewayError): void {
    this.failures++
    if (this.shown !== undefined && this.failures <= TOLERATED_FAILURES) {
      this.lookAfter(Math.max(this.plan.pauseMs(), (error.details.retryAfterSeconds ?? 0) * 1000))
      return
    }
    this.finish((listener) => {
      listener.failed(error)
    })
  }

  private lookAfter(delayMs: number): void {
    if (this.isOver) return
    this.timer = setTimeout(() => void this.look(), delayMs)
  }

  private finish(word: (listener: TaskListener) => void): void {
    const listeners = [...this.listeners]
    this.close()
    for (const listener of listeners) word(listener)
  }

  private close(): void {
    if (this.isOver) return
    this.isOver = true
    this.listeners.clear()
    clearTimeout(this.timer)
    this.plan.close()
  }
}

const hasChanged = (before: UpstreamImageTask, now: UpstreamImageTask): boolean =>
  before.status !== now.status || before.progress !== now.progress || before.imageUrl !== now.imageUrl
