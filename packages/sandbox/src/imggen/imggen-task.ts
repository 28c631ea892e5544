import { createHash } from 'node:crypto'
import type { JsonObject } from '../server/json-value.js'
import type { ImggenStep } from './imggen-timeline.js'

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
/** A number no double can hold, in a field the specification does not name: both must survive a relay. */
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
