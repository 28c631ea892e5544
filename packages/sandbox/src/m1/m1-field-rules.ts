import { fieldOf, isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { betaCheck, judgeBetaParts, taskBudget } from './m1-beta-rules.js'
import { reject } from './m1-errors.js'
import {
  anything,
  between,
  boolean,
  type Check,
  integer,
  jsonOutputFormat,
  list,
  nullable,
  object,
  oneOf,
  shape,
  string,
} from './m1-field-checks.js'
import type { M1Model } from './m1-models.js'

export const VERSIONS = ['2023-06-01', '2026-10-21'] as const
export type M1Version = (typeof VERSIONS)[number]

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
  output_config: shape(
    {},
    {
      effort: nullable(oneOf('low', 'medium', 'high', 'xhigh', 'max')),
      format: jsonOutputFormat,
      task_budget: taskBudget,
    },
  ),
  service_tier: oneOf('auto', 'standard_only'),
  cache_control: nullable(object),
  speed: nullable(oneOf('standard', 'fast')),
  container: nullable(container),
  inference_geo: nullable(string),
  diagnostics: nullable(object),
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
  'container',
  'inference_geo',
  'diagnostics',
  'thread',
  'fallbacks',
  'fallback_credit_token',
]

/** How a body is judged: by the headers and the path it came with. */
export interface M1Terms {
  readonly version: M1Version
  /** The names in `anthropic-beta`. */
  readonly betas: readonly string[]
  readonly counting: boolean
}

/** Judges the top-level fields of section 3 of the messages notes. Throws M1Rejection. */
export function judgeFields(body: JsonObject, { version, betas, counting }: M1Terms): void {
  for (const name of counting ? ['model', 'messages'] : ['model', 'max_tokens', 'messages']) {
    if (body[name] === undefined) reject(`${name}: Field required`)
  }
  for (const [name, value] of Object.entries(body)) {
    const check = Object.hasOwn(FIELDS, name) ? FIELDS[name] : betaCheck(name, betas)
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
export function judgeModelLimits(body: JsonObject, model: M1Model, betas: readonly string[]): void {
  const maxTokens = body['max_tokens']
  if (typeof maxTokens === 'number') {
    // 0 fills the prompt cache and generates nothing.
    if (maxTokens < 0) reject('max_tokens: Input should be greater than or equal to 0')
    if (maxTokens > model.maxOutputTokens) {
      const limit = `${model.maxOutputTokens}, which is the maximum allowed number of output tokens`
      reject(`max_tokens: ${maxTokens} > ${limit} for ${model.resolved}`)
    }
  }
  if (typeof fieldOf(body['output_config'], 'effort') === 'string' && !model.effort) {
    reject('This model does not support the effort parameter.')
  }
  judgeBetaParts(body, model, betas)
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

/** An id, or a description of the container with the skills in it. */
function container(value: unknown, path: string): void {
  if (typeof value !== 'string') shape({}, { id: nullable(string), skills: nullable(list) })(value, path)
}
