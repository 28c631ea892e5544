import { randomInt } from 'node:crypto'

import { TaskTimers, type TaskClock } from '../tasks/task-clock.js'
import { isOver, stepOf, type ImggenTask } from './imggen-task.js'
import { timelineOf } from './imggen-timeline.js'

/** What the caller gave for a new task. */
export interface ImggenOrder {
  readonly prompt: string
  /** Handed back as it came. */
  readonly state?: string
  /** Called at every change. */
  readonly notifyHook?: string
  /** Default: a new one. */
  readonly id?: string
}

interface TaskRules {
  readonly clock: TaskClock
  /** How long each step lasts; `manual`: until a test moves the task. */
  readonly stepMs: number | 'manual'
  /** Called after each change. */
  readonly onChange: (task: ImggenTask) => void
}

/** The account's tasks and what becomes of them. They live as long as this object. */
export class ImggenTasks {
  readonly #byId = new Map<string, ImggenTask>()
  readonly #timers: TaskTimers<ImggenTask>

  constructor(private readonly rules: TaskRules) {
    this.#timers = new TaskTimers(rules.clock)
  }

  submit({ prompt, state = '', notifyHook = '', id = this.#newId() }: ImggenOrder): ImggenTask {
    const submitTime = this.rules.clock.nowMs()
    const task: ImggenTask = { id, prompt, state, notifyHook, timeline: timelineOf(prompt), submitTime, at: 0 }
    this.#byId.set(id, task)
    this.#schedule(task)
    return task
  }

  find(id: string): ImggenTask | undefined {
    return this.#byId.get(id)
  }

  all(): readonly ImggenTask[] {
    return [...this.#byId.values()]
  }

  /** One step on: this task, or all; those that have ended, and those that never end, stay where they are. */
  advance(id?: string): void {
    if (id === undefined) for (const task of this.all()) this.#step(task)
    else this.#step(this.#known(id))
  }

  /** To the end of its timeline, with every step on the way. */
  finish(id: string): void {
    const task = this.#known(id)
    while (task.at < task.timeline.length - 1) this.#step(task)
  }

  /** From now on the service does not know the task. */
  forget(id: string): void {
    this.#timers.clear(this.#known(id))
    this.#byId.delete(id)
  }

  /** Nothing changes any more by itself. */
  close(): void {
    this.#timers.clearAll()
  }

  #known(id: string): ImggenTask {
    const task = this.find(id)
    if (task === undefined) throw new Error(`There is no task ${id}.`)
    return task
  }

  #step(task: ImggenTask): void {
    if (task.at >= task.timeline.length - 1) return
    task.at += 1
    const nowMs = this.rules.clock.nowMs()
    if (stepOf(task).status === 'SUBMITTED') task.startTime = nowMs
    if (isOver(task)) task.finishTime = nowMs
    this.#schedule(task)
    this.rules.onChange(task)
  }

  #schedule(task: ImggenTask): void {
    const { stepMs } = this.rules
    this.#timers.clear(task)
    // A window that was opened waits for the user.
    if (stepMs === 'manual' || isOver(task) || stepOf(task).status === 'MODAL') return
    this.#timers.set(task, stepMs, () => {
      this.#step(task)
    })
  }

  #newId(): string {
    for (let timeMs = this.rules.clock.nowMs(); ; timeMs += 1) {
      const id = `${timeMs}${String(randomInt(1000)).padStart(3, '0')}`
      if (!this.#byId.has(id)) return id
    }
  }
}
