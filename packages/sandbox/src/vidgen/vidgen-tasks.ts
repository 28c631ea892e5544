import { randomInt } from 'node:crypto'
import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'
import { type TaskClock, TaskTimers } from '../tasks/task-clock.js'
import type { Mp4Facts } from './mp4-file.js'
import { rejectField } from './vidgen-errors.js'
import type { VidgenKind } from './vidgen-request.js'

export type VidgenStatus = 'submitted' | 'processing' | 'succeed' | 'failed'

/** A task as the service holds it. Times are Unix milliseconds. */
export interface VidgenTask {
  readonly id: string
  readonly kind: VidgenKind
  /** Empty when the caller gave none. */
  readonly externalTaskId: string
  /** The body it was made from, without the images. */
  readonly fields: JsonObject
  readonly createdAtMs: number
  updatedAtMs: number
  status: VidgenStatus
}

/** What the service does with a video: it is deleted after this time. */
export const MEDIA_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000
const MODERATION = 'Failure to pass the risk control system'
/** A field the documents do not name, whose number exceeds a double: both must survive a relay. */
const UNDOCUMENTED = '"trace_number":9223372036854775807'
const SHORT_SIDES: Readonly<Record<string, number>> = { std: 720, pro: 1080 }

/** Nineteen digits, like a number that is too large for one. */
const newTaskId = (): string => `83${digits(9)}${digits(8)}`

const digits = (count: number): string => String(randomInt(10 ** count)).padStart(count, '0')

export const isOver = ({ status }: VidgenTask): boolean => status === 'succeed' || status === 'failed'

/** Whether the prompt holds this word by itself, as `#fail` does for `fail`. */
export function hasWord({ fields }: Pick<VidgenTask, 'fields'>, word: string): boolean {
  return textOf(fields['prompt']).split(/\s+/u).includes(`#${word}`)
}

/** The answer to a create. */
export function createdText(task: VidgenTask): string {
  return JSON.stringify({
    task_id: task.id,
    task_info: taskInfo(task),
    task_status: task.status,
    created_at: task.createdAtMs,
    updated_at: task.updatedAtMs,
  })
}

/** The task object of a query or a list; `mediaUrl` is the address before `/media`. */
export function taskText(task: VidgenTask, mediaUrl: string): string {
  const done = task.status === 'succeed'
  const object = {
    task_id: task.id,
    task_status: task.status,
    task_status_msg: task.status === 'failed' ? MODERATION : '',
    task_info: taskInfo(task),
    ...(done ? { task_result: { videos: [video(task, mediaUrl, hasWatermark(task))] } } : {}),
    watermark_info: { enabled: hasWatermark(task) },
    ...(isOver(task) ? { final_unit_deduction: done ? price(task) : '0' } : {}),
    created_at: task.createdAtMs,
    updated_at: task.updatedAtMs,
    ...(done ? { final_balance_deduction: { quota: '0.28', list_price: '0.28' } } : {}),
  }
  return `${JSON.stringify(object).slice(0, -1)},${UNDOCUMENTED}}`
}

/** What a callback tells: the task in an older form, without envelope and without the watermarked copy. */
export function callbackText(task: VidgenTask, mediaUrl: string): string {
  const done = task.status === 'succeed'
  return JSON.stringify({
    task_id: task.id,
    task_status: task.status,
    task_status_msg: task.status === 'failed' ? MODERATION : '',
    created_at: task.createdAtMs,
    updated_at: task.updatedAtMs,
    ...(isOver(task) ? { final_unit_deduction: done ? price(task) : '0' } : {}),
    task_info: { ...taskInfo(task), parent_video: { id: '', url: '', duration: '' } },
    task_result: { images: [], videos: done ? [video(task, mediaUrl, false)] : [] },
  })
}

/** Size and duration of the task's video. */
export function videoFacts({ fields }: VidgenTask): Mp4Facts {
  const short = SHORT_SIDES[textOf(fields['mode'])] ?? 720
  const long = (short * 16) / 9
  const durationMs = Number(textOf(fields['duration']) || '5') * 1000 + 100
  const ratio = textOf(fields['aspect_ratio'])
  if (ratio === '1:1') return { durationMs, width: short, height: short }
  return ratio === '9:16' ? { durationMs, width: short, height: long } : { durationMs, width: long, height: short }
}

function taskInfo(task: VidgenTask): JsonObject {
  return { external_task_id: task.externalTaskId }
}

function video(task: VidgenTask, mediaUrl: string, withWatermark: boolean): JsonObject {
  const address = `${mediaUrl}/media/${task.id}`
  return {
    id: `${task.id}-0`,
    url: `${address}.mp4`,
    ...(withWatermark ? { watermark_url: `${address}-watermark.mp4` } : {}),
    duration: String(videoFacts(task).durationMs / 1000),
  }
}

export function hasWatermark({ fields }: VidgenTask): boolean {
  return fieldOf(fields['watermark_info'], 'enabled') === true
}

/** In units of the resource pack, as text. */
function price({ fields }: VidgenTask): string {
  return String((textOf(fields['mode']) === 'pro' ? 3.5 : 2) * (textOf(fields['duration']) === '10' ? 2 : 1))
}

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

  /** Throws VidgenRejection 1201 when the external id was used before, in any state of its task. */
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
