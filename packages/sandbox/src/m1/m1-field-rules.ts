import { fieldOf, isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { M1Rejection, reject } from './m1-errors.js'

export interface M1Model {
  /** The dated name answers carry. */
  readonly resolved: string
  readonly maxOutputTokens: number
  /** The old thinking form `enabled` with a budget works, sampling parameters are free, mid-conversation `system` is refused. */
  readonly classic: boolean
  /** `adaptive` thinking works. */
  readonly adaptive: boolean
}

const CLASSIC: Omit<M1Model, 'resolved'> = { maxOutputTokens: 64_000, classic: true, adaptive: false }
const BRIDGE: Omit<M1Model, 'resolved'> = { maxOutputTokens: 64_000, classic: true, adaptive: true }
const NEWER: Omit<M1Model, 'resolved'> = { maxOutputTokens: 128_000, classic: false, adaptive: true }

const MODELS: Readonly<Record<string, M1Model>> = {
  'claude-haiku-4-5': { ...CLASSIC, resolved: 'claude-haiku-4-5-20251001' },
  'claude-sonnet-4-5': { ...CLASSIC, resolved: 'claude-sonnet-4-5-20250929' },
  'claude-opus-4-5': { ...CLASSIC, resolved: 'claude-opus-4-5-20251101' },
  'claude-opus-4-1': { ...CLASSIC, maxOutputTokens: 32_000, resolved: 'claude-opus-4-1-20250805' },
  'claude-sonnet-4-6': { ...BRIDGE, resolved: 'claude-sonnet-4-6' },
  'claude-opus-4-6': { ...BRIDGE, resolved: 'claude-opus-4-6' },
  'claude-opus-4-7': { ...NEWER, resolved: 'claude-opus-4-7' },
  'claude-opus-4-8': { ...NEWER, resolved: 'claude-opus-4-8' },
  'claude-sonnet-5': { ...NEWER, resolved: 'claude-sonnet-5' },
  'claude-opus-5': { ...NEWER, resolved: 'claude-opus-5' },
}

/** Unknown ids are taken for a classic model of that name, unless they begin with `missing-`. Throws the 404. */
export function m1Model(id: string): M1Model {
  if (id.startsWith('missing-')) throw new M1Rejection(404, `model: ${id}`)
  const undated = id.replace(/-20\d{6}$/, '')
  const known = Object.hasOwn(MODELS, undated) ? MODELS[undated] : undefined
  if (known !== undefined) return undated === id ? known : { ...known, resolved: id }
  return { ...BRIDGE, resolved: id }
}

export const VERSIONS = ['2023-06-01', '2026-10-21'] as const
export type M1Version = (typeof VERSIONS)[number]

type Check = (value: unknown, path: string) => void

const integer: Check = (value, path) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) reject(`${path}: Input should be a valid integer`)
}
const string: Check = (value, path) => {
  if (typeof value !== 'string') reject(`${path}: Input should be a valid string`)
}
const object: Check = (value, path) => {
  if (!isObject(value)) reject(`${path}: Input should be a valid dictionary`)
}
const list: Check = (value, path) => {
  if (!Array.isArray(value)) reject(`${path}: Input should be a valid list`)
}
const boolean: Check = (value, path) => {
  if (typeof value !== 'boolean') reject(`${path}: Input should be a valid boolean`)
}
const between =
  (min: number, max: number): Check =>
  (value, path) => {
    if (typeof value !== 'number') reject(`${path}: Input should be a valid number`)
    if (value < min) reject(`${path}: Input should be greater than or equal to ${min}`)
    if (value > max) reject(`${path}: Input should be less than or equal to ${max}`)
  }
const anything: Check = () => undefined

const FIELDS: Readonly<Record<string, Check>> = {
  model: string,
  messages: list,
  max_tokens: integer,
  system,
  stop_sequences: stopSequences,
  stream: boolean,
  temperature: between(0, 1),
  top_p: between(0, 1),
  top_k: integer,
  metadata,
  tools: list,
  tool_choice: object,
  thinking: object,
  output_config: outputConfig,
  service_tier: serviceTier,
  cache_control: object,
  speed: anything,
  container: anything,
  inference_geo: anything,
  diagnostics: anything,
  user_profile_id: anything,
  workspace_id: anything,
}
/** Fields that only make sense when an answer is generated. */
const NOT_FOR_COUNTING = [
  'max_tokens',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'service_tier',
]

/** Judges the top-level fields of section 3 of the messages notes. Throws M1Rejection. */
export function judgeFields(body: JsonObject, version: M1Version, counting: boolean): void {
  for (const name of counting ? ['model', 'messages'] : ['model', 'max_tokens', 'messages']) {
    if (body[name] === undefined) reject(`${name}: Field required`)
  }
  for (const [name, value] of Object.entries(body)) {
    const check = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined
    if (check === undefined || (counting && NOT_FOR_COUNTING.includes(name))) {
      reject(`${name}: Extra inputs are not permitted`)
    }
    if (version === '2026-10-21' && ['temperature', 'top_p', 'top_k'].includes(name)) {
      reject(`${name}: Extra inputs are not permitted`)
    }
    check(value, name)
  }
}

/** Judges what depends on the model. */
export function judgeModelLimits(body: JsonObject, model: M1Model): void {
  const maxTokens = body['max_tokens']
  if (typeof maxTokens === 'number') {
    if (maxTokens < 1) reject('max_tokens: Input should be greater than or equal to 1')
    if (maxTokens > model.maxOutputTokens) {
      const limit = `${model.maxOutputTokens}, which is the maximum allowed number of output tokens`
      reject(`max_tokens: ${maxTokens} > ${limit} for ${model.resolved}`)
    }
  }
  if (model.classic) return
  const { temperature, top_p: topP, top_k: topK } = body
  if (temperature !== undefined && temperature !== 1) reject('`temperature` may only be set to 1 for this model.')
  if (typeof topP === 'number' && topP < 0.99) reject('`top_p` must be at least 0.99 for this model.')
  if (topK !== undefined) reject('`top_k` is not supported by this model.')
}

function system(value: unknown, path: string): void {
  if (typeof value === 'string') return
  if (!Array.isArray(value)) reject(`${path}: Input should be a valid string`)
  listOf(value).forEach((block, index) => {
    if (fieldOf(block, 'type') !== 'text') reject(`${path}.${index}.type: Input should be 'text'`)
    if (textOf(fieldOf(block, 'text')) === '') reject(`${path}: text content blocks must be non-empty`)
  })
}

function stopSequences(value: unknown, path: string): void {
  list(value, path)
  for (const stop of listOf(value)) {
    string(stop, path)
    if (textOf(stop).trim() === '') reject('stop_sequences: each stop sequence must contain non-whitespace')
  }
}

function metadata(value: unknown, path: string): void {
  object(value, path)
  const extra = isObject(value) ? Object.keys(value).find((key) => key !== 'user_id') : undefined
  if (extra !== undefined) reject(`${path}.${extra}: Extra inputs are not permitted`)
  const userId = fieldOf(value, 'user_id')
  if (userId !== undefined && userId !== null) string(userId, `${path}.user_id`)
}

function outputConfig(value: unknown, path: string): void {
  object(value, path)
  const effort = fieldOf(value, 'effort')
  if (effort === undefined || ['low', 'medium', 'high', 'xhigh', 'max'].includes(textOf(effort))) return
  reject(`${path}.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'`)
}

function serviceTier(value: unknown, path: string): void {
  if (value !== 'auto' && value !== 'standard_only') reject(`${path}: Input should be 'auto' or 'standard_only'`)
}
