import { fieldOf, isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'
import {
  anything,
  type Check,
  each,
  integer,
  jsonOutputFormat,
  nullable,
  object,
  oneOf,
  shape,
  string,
} from './m1-field-checks.js'
import type { M1Model } from './m1-models.js'

interface BetaField {
  /** Any of these in `anthropic-beta` makes the field known. */
  readonly betas: readonly string[]
  readonly check: Check
}

const COMPACTING = 'compact-2026-01-12'
const CONTEXT_MANAGEMENT = 'context-management-2025-06-27'
const TASK_BUDGETS = 'task-budgets-2026-03-13'
const FAST_MODE = 'fast-mode-2026-02-01'

const webAddress: Check = (value, path) => {
  string(value, path)
  if (!/^https?:\/\//.test(textOf(value))) reject(`${path}: Input should be a valid URL`)
}

const mcpServer = shape(
  { type: oneOf('url'), name: string, url: webAddress },
  { authorization_token: nullable(string), tool_configuration: nullable(object) },
)

const thread: Check = (value, path) => {
  const type = fieldOf(value, 'type')
  oneOf('create', 'continue')(type, `${path}.type`)
  if (type === 'create') shape({ type: anything })(value, path)
  else shape({ type: anything, previous_message_id: string })(value, path)
}

/** Fields that a request may only have when its `anthropic-beta` header asks for them. */
const BETA_FIELDS: Readonly<Record<string, BetaField>> = {
  billing_policy: { betas: ['user-profiles-billing-2026-10-01'], check: nullable(object) },
  compaction: {
    betas: ['compact-2026-09-04'],
    check: nullable(shape({ type: oneOf('summarize') }, { instructions: nullable(string) })),
  },
  context_management: {
    betas: [CONTEXT_MANAGEMENT, COMPACTING],
    check: nullable(shape({}, { edits: each(object) })),
  },
  fallback_credit_token: { betas: ['fallback-credit-2026-06-01', 'fallback-credit-2026-07-01'], check: anything },
  fallbacks: { betas: ['server-side-fallback-2026-06-01', 'server-side-fallback-2026-07-01'], check: anything },
  mcp_servers: {
    betas: ['mcp-client-2025-04-04', 'mcp-client-2025-11-20', 'mcp-client-2026-09-15'],
    check: each(mcpServer),
  },
  output_format: { betas: ['structured-outputs-2025-11-13'], check: jsonOutputFormat },
  thread: { betas: ['message-threads-2026-08-12'], check: nullable(thread) },
}

/** The check of a field in beta; undefined without its header: to the upstream the field does not exist then. */
export function betaCheck(name: string, betas: readonly string[]): Check | undefined {
  const field = Object.hasOwn(BETA_FIELDS, name) ? BETA_FIELDS[name] : undefined
  return field !== undefined && field.betas.some((beta) => betas.includes(beta)) ? field.check : undefined
}

const CONTEXT_EDITS: Readonly<Record<string, string>> = {
  clear_thinking_20251015: CONTEXT_MANAGEMENT,
  clear_tool_uses_20250919: CONTEXT_MANAGEMENT,
  compact_20260112: COMPACTING,
}

/** Judges parts of fields that have a beta of their own. Throws M1Rejection. */
export function judgeBetaParts(body: JsonObject, model: M1Model, betas: readonly string[]): void {
  listOf(fieldOf(body['context_management'], 'edits')).forEach((edit, index) => {
    const type = textOf(fieldOf(edit, 'type'))
    const usable = Object.keys(CONTEXT_EDITS).filter((name) => betas.includes(CONTEXT_EDITS[name] ?? ''))
    if (!usable.includes(type)) wrongTag(`context_management.edits.${index}`, type, usable)
  })
  if (isObject(fieldOf(body['output_config'], 'task_budget')) && !betas.includes(TASK_BUDGETS)) {
    reject('output_config.task_budget: Extra inputs are not permitted')
  }
  if (typeof body['speed'] === 'string' && model.speedInBeta && !betas.includes(FAST_MODE)) {
    reject('speed: Extra inputs are not permitted')
  }
}

export const taskBudget = nullable(shape({ type: oneOf('tokens'), total: integer }, { remaining: nullable(integer) }))

/** What may stand on a mid-conversation `system` message beside its content, by the beta that allows it. */
const SYSTEM_MESSAGE_FIELDS: Readonly<Record<string, string>> = {
  clear_at: 'mid-conversation-system-clear-at-2026-08-21',
  output_config: 'mid-conversation-output-config-2026-07-01',
}

export function isSystemMessageField(name: string, betas: readonly string[]): boolean {
  const beta = Object.hasOwn(SYSTEM_MESSAGE_FIELDS, name) ? SYSTEM_MESSAGE_FIELDS[name] : undefined
  return beta !== undefined && betas.includes(beta)
}

export function wrongTag(path: string, type: string, expected: readonly string[]): never {
  const tags = expected.map((name) => `'${name}'`).join(', ')
  reject(`${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`)
}
