import { JsonBody } from '../../core/json-body.js'
import type { UpstreamImageTask } from '../image.contract.js'

type FieldType = 'string' | 'integer' | 'array' | 'object'

/** Specification: Image task, fields, in its order. */
export const IMAGE_TASK_FIELDS = {
  id: 'string',
  action: 'string',
  customId: 'string',
  botType: 'string',
  prompt: 'string',
  promptEn: 'string',
  description: 'string',
  state: 'string',
  submitTime: 'integer',
  startTime: 'integer',
  finishTime: 'integer',
  imageUrl: 'string',
  status: 'string',
  progress: 'string',
  failReason: 'string',
  buttons: 'array',
  maskBase64: 'string',
  properties: 'object',
} as const satisfies Record<string, FieldType>

/** JSON text of a field that says nothing. */
const EMPTY: Readonly<Record<FieldType, string>> = { string: '""', integer: '0', array: '[]', object: '{}' }

const TERMINAL: ReadonlySet<string> = new Set(['SUCCESS', 'FAILURE', 'CANCEL'])

/** No leading zeros: those are no JSON number. */
const DIGITS = /^(?:0|[1-9]\d*)$/

/**
 * The task object with every field of the specification: what is missing or null is filled in, numbers and texts that
 * stand for each other are exchanged, everything else keeps the upstream's bytes. A `seed` goes into `properties.seed`.
 */
export function imageTaskOf(task: JsonBody, askedId: string, seed?: string): UpstreamImageTask {
  const edits: Record<string, string> = {}
  for (const [name, type] of Object.entries(IMAGE_TASK_FIELDS)) {
    const text = mended(task.fields[name], task.textOf(name) ?? '', type)
    if (text !== undefined) edits[name] = text
  }
  if (edits['id'] === EMPTY.string) edits['id'] = JSON.stringify(askedId)
  if (seed !== undefined) edits['properties'] = propertiesWith(seed, task)
  const status = textIn(task, 'status')
  return {
    status,
    progress: textIn(task, 'progress'),
    imageUrl: textIn(task, 'imageUrl'),
    isTerminal: TERMINAL.has(status),
    object: task.edited(edits).toString().trim(),
  }
}

/** What has to stand there instead; undefined = it may stay. */
function mended(value: unknown, text: string, type: FieldType): string | undefined {
  if (value === undefined || value === null) return EMPTY[type]
  if (type === 'string') return typeof value === 'number' ? JSON.stringify(text) : undefined
  // Some relays keep everything as text, and nothing as an empty one.
  if (value === '') return EMPTY[type]
  return type === 'integer' && typeof value === 'string' && DIGITS.test(value) ? value : undefined
}

function propertiesWith(seed: string, task: JsonBody): string {
  const properties = task.fields['properties']
  const isObject = typeof properties === 'object' && properties !== null && !Array.isArray(properties)
  const text = isObject ? (task.textOf('properties') ?? EMPTY.object) : EMPTY.object
  return JsonBody.parse(Buffer.from(text))
    .edited({ seed: JSON.stringify(seed) })
    .toString()
}

function textIn(task: JsonBody, name: string): string {
  const value = task.fields[name]
  if (typeof value === 'string') return value
  return typeof value === 'number' ? (task.textOf(name) ?? '') : ''
}
