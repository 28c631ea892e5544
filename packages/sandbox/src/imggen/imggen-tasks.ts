import { createHash, randomInt } from 'node:crypto'
import type { JsonObject } from '../server/json-value.js'
import { type TaskClock, TaskTimers } from '../tasks/task-clock.js'

export type ImggenStatus = 'NOT_START' | 'SUBMITTED' | 'MODAL' | 'IN_PROGRESS' | 'SUCCESS' | 'FAILURE'

/** What a task shows for a while. */
interface ImggenStep {
  readonly status: ImggenStatus
  /** null: nothing is known yet. */
  readonly progress: string | null
  readonly hasImage: boolean
}

const step = (status: ImggenStatus, progress: string | null, hasImage = false): ImggenStep => ({
  status,
  progress,
  hasImage,
})

const NOT_START = step('NOT_START', null)
const MODAL = step('MODAL', '0%')
const SUBMITTED = step('SUBMITTED', '0%')
const FIRST_PREVIEW = [step('IN_PROGRESS', '0%'), step('IN_PROGRESS', '31%', true)]
const LATER_PREVIEWS = [step('IN_PROGRESS', '62%', true), step('IN_PROGRESS', '93%', true)]
const SUCCESS = step('SUCCESS', '100%', true)
const FAILURE = step('FAILURE', '')

/** The steps of a task one after the other. Without a last step that is an end, it stays at the last one for ever. */
function timelineOf(prompt: string): readonly ImggenStep[] {
  const words = prompt.split(/\s+/u)
  const start = words.includes('#modal') ? [NOT_START, MODAL, SUBMITTED] : [NOT_START, SUBMITTED]
  if (words.includes('#fail')) return [...start, ...FIRST_PREVIEW, FAILURE]
  if (words.includes('#stuck')) return [...start, ...FIRST_PREVIEW]
  return [...start, ...FIRST_PREVIEW, ...LATER_PREVIEWS, SUCCESS]
}

/**
 * The members of the family: `N` the original (fewer fields, null until known), `T` the one with the most fields, `A` a
 * relay before either (every field, 0 and empty texts until known).
 */
export type ImggenVariant = 'N' | 'T' | 'A'

/** A task as the service holds it. Times are Unix milliseconds. */
export interface ImggenTask {
  /** Sixteen digits: the time and three more. */
  readonly id: string
  readonly prompt: string
  readonly state: string
  readonly notifyHook: string
  readonly timeline: readonly ImggenStep[]
  readonly submitTime: number
  startTime?: number
  finishTime?: number
  /** Place in the timeline. */
  at: number
}

const FAIL_REASON = 'Request to the drawing service failed: the content was rejected'
/** A number beyond a double, in a field the specification does not name: both must survive a relay. */
const UNDOCUMENTED = '"shardId":9223372036854775807'

export function stepOf(task: ImggenTask): ImggenStep {
  const step = task.timeline[task.at]
  if (step === undefined) throw new Error(`Task ${task.id} has left its timeline.`)
  return step
}

export const isOver = (task: ImggenTask): boolean => ['SUCCESS', 'FAILURE'].includes(stepOf(task).status)

/** Ten digits or fewer, always the same ones for a task. */
export function seedOf({ id }: ImggenTask): string {
  return String(createHash('sha256').update(id).digest().readUInt32BE(0))
}

/** The task object; `imageUrl` is the address before `/images`. */
export function taskText(task: ImggenTask, variant: ImggenVariant, imageUrl: string, withSeed = false): string {
  const fields = withSeed ? withSeedOf(task, fieldsOf(task, variant, imageUrl)) : fieldsOf(task, variant, imageUrl)
  const text = JSON.stringify(fields)
  return variant === 'T' ? `${text.slice(0, -1)},${UNDOCUMENTED}}` : text
}

function withSeedOf(task: ImggenTask, fields: JsonObject): JsonObject {
  return { ...fields, properties: { ...(fields['properties'] as JsonObject), seed: seedOf(task) } }
}

function fieldsOf(task: ImggenTask, variant: ImggenVariant, imageUrl: string): JsonObject {
  const { status, progress, hasImage } = stepOf(task)
  const done = status === 'SUCCESS'
  const unknownTime = variant === 'A' ? 0 : null
  const unknownText = variant === 'A' ? '' : null
  return {
    id: task.id,
    action: 'IMAGINE',
    ...(variant === 'N' ? {} : { customId: unknownText, botType: 'MID_JOURNEY' }),
    prompt: task.prompt,
    promptEn: task.prompt,
    description: `/imagine ${task.prompt}`,
    state: task.state,
    submitTime: task.submitTime,
    startTime: task.startTime ?? unknownTime,
    finishTime: task.finishTime ?? unknownTime,
    imageUrl: hasImage ? `${imageUrl}/images/${task.id}-${task.at}.png` : unknownText,
    status,
    progress: progress ?? unknownText,
    failReason: status === 'FAILURE' ? FAIL_REASON : unknownText,
    ...(variant === 'N' ? {} : { buttons: done ? buttonsOf(task) : [], maskBase64: unknownText }),
    properties: propertiesOf(task, variant, done),
    ...(variant === 'T' ? { jobId: done ? jobOf(task) : null, mode: 'FAST', instanceId: '1118138338562560102' } : {}),
  }
}

function propertiesOf(task: ImggenTask, variant: ImggenVariant, done: boolean): JsonObject {
  const prompts = { finalPrompt: done ? `${task.prompt} --v 6` : '', finalZhPrompt: '' }
  if (variant === 'A') return prompts
  const message = done ? { messageId: `118${task.id}`, messageHash: jobOf(task), flags: 0 } : {}
  return { notifyHook: task.notifyHook === '' ? null : task.notifyHook, nonce: task.id, ...message, ...prompts }
}

/** Upsample 1 to 4, reroll, variation 1 to 4. */
function buttonsOf(task: ImggenTask): readonly JsonObject[] {
  const job = jobOf(task)
  const button = (customId: string, label: string, emoji = ''): JsonObject => {
    return { customId: `MJ::JOB::${customId}`, emoji, label, type: 2, style: 2 }
  }
  const four = (operation: string, letter: string): JsonObject[] =>
    [1, 2, 3, 4].map((index) => button(`${operation}::${index}::${job}`, `${letter}${index}`))
  return [...four('upsample', 'U'), button(`reroll::0::${job}::SOLO`, '', '🔄'), ...four('variation', 'V')]
}

/** A UUID, always the same one for a task. */
function jobOf({ id }: ImggenTask): string {
  const hex = createHash('sha256').update(`job ${id}`).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)]
  return parts.join('-')
}

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
