import { type JsonObject, textOf } from '../server/json-value.js'
import { type TaskClock, TaskTimers } from '../tasks/task-clock.js'
import { rejectField } from './vidgen-errors.js'
import type { VidgenKind } from './vidgen-request.js'
import { hasWord, isOver, newTaskId, type VidgenStatus, type VidgenTask } from './vidgen-task.js'

/** How long a task stays in its first two states; `manual`: until a test moves it. */
export type VidgenTaskMs = { readonly submitted: number; readonly processing: number } | 'manual'

interface TaskRules {
  readonly clock: TaskClock
  readonly taskMs: VidgenTaskMs
  /** Called after each change. */
  readonly onChange: (task: VidgenTask) => void
}

/** The account's tasks and what becomes of them. They live as long as this object. */
export class VidgenTasks {
  /** Every task that was made, oldest first; also those forgotten since. */
  readonly creates: VidgenTask[] = []
  /** External ids that came again. */
  readonly duplicates: string[] = []
  readonly #byId = new Map<string, VidgenTask>()
  readonly #byExternalId = new Map<string, VidgenTask>()
  readonly #timers: TaskTimers<VidgenTask>

  constructor(private readonly rules: TaskRules) {
    this.#timers = new TaskTimers(rules.clock)
  }

  /** Throws VidgenRejection 1201 when the external id was used before, whatever became of its task. */
  create(kind: VidgenKind, body: JsonObject): VidgenTask {
    const externalTaskId = textOf(body['external_task_id'])
    if (externalTaskId !== '' && this.#byExternalId.has(externalTaskId)) {
      this.duplicates.push(externalTaskId)
      rejectField('external_task_id', 'is used already')
    }
    const fields = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'image_list'))
    const nowMs = this.rules.clock.nowMs()
    const times = { createdAtMs: nowMs, updatedAtMs: nowMs }
    const task: VidgenTask = { id: newTaskId(), kind, externalTaskId, fields, ...times, status: 'submitted' }
    this.creates.push(task)
    this.#byId.set(task.id, task)
    if (externalTaskId !== '') this.#byExternalId.set(externalTaskId, task)
    this.#schedule(task)
    return task
  }

  /** By the task's own id or the external one. */
  find(id: string): VidgenTask | undefined {
    return this.#byId.get(id) ?? this.#byExternalId.get(id)
  }

  /** Newest first; `pageNum` from 1. */
  list(kind: VidgenKind, pageNum: number, pageSize: number): readonly VidgenTask[] {
    const newestFirst = [...this.#byId.values()].filter((task) => task.kind === kind).reverse()
    return newestFirst.slice((pageNum - 1) * pageSize, pageNum * pageSize)
  }

  /** One step on: one task by either id, or all that have not ended. Those that never end stay where they are. */
  advance(id?: string): void {
    const tasks = id === undefined ? [...this.#byId.values()] : [this.#known(id)]
    for (const task of tasks) this.#step(task)
  }

  /** Puts a task into a state, whichever it is in. */
  show(id: string, status: VidgenStatus): void {
    this.#change(this.#known(id), status)
  }

  /** From now on the service does not know the task. */
  forget(id: string): void {
    const task = this.#known(id)
    this.#timers.clear(task)
    this.#byId.delete(task.id)
    this.#byExternalId.delete(task.externalTaskId)
  }

  /** Nothing changes any more by itself. */
  close(): void {
    this.#timers.clearAll()
  }

  #known(id: string): VidgenTask {
    const task = this.find(id)
    if (task === undefined) throw new Error(`There is no task ${id}.`)
    return task
  }

  #step(task: VidgenTask): void {
    if (task.status === 'submitted') this.#change(task, 'processing')
    else if (task.status === 'processing' && !hasWord(task, 'stuck')) {
      this.#change(task, hasWord(task, 'fail') ? 'failed' : 'succeed')
    }
  }

  #change(task: VidgenTask, status: VidgenStatus): void {
    task.status = status
    task.updatedAtMs = this.rules.clock.nowMs()
    this.#schedule(task)
    this.rules.onChange(task)
  }

  #schedule(task: VidgenTask): void {
    const { taskMs } = this.rules
    this.#timers.clear(task)
    if (taskMs === 'manual' || isOver(task)) return
    this.#timers.set(task, task.status === 'submitted' ? taskMs.submitted : taskMs.processing, () => {
      this.#step(task)
    })
  }
}
