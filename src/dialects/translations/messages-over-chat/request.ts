import { hash } from 'node:crypto'
import { isRecord } from '../../../core/validation-rules.js'
import type { ChatFields } from '../../openai-wire.js'
import { applyFieldTable, dropped, elsewhere, type FieldTable, passed, refused } from '../field-table.js'
import { isAbsent, listAt, type Members, objectAt, textAt, wrongShape } from '../members.js'
import { effortsOf, effortTaken, isKeptFromThinking } from '../efforts.js'
import { effortFor } from '../to-messages/thinking.js'
import { translateFormat } from './answer-format.js'
import { BETA_FIELDS } from './beta-fields.js'
import { conversationOf } from './conversation.js'
import { type MemberTable, type ChatRequestDraft } from './request-draft.js'
import { translateToolChoice, translateTools } from './tools.js'

const LEAVE_OUT = 'Leave it out, or ask for a model that is served in its own dialect.'

const FIELDS: FieldTable<ChatRequestDraft> = {
  model: elsewhere,
  messages: elsewhere,
  system: elsewhere,
  cache_control: elsewhere,
  max_tokens: maximum,
  stop_sequences: stops,
  stream,
  temperature: passed,
  top_p: passed,
  top_k: refused(LEAVE_OUT),
  tools: translateTools,
  tool_choice: translateToolChoice,
  thinking,
  output_config: outputConfig,
  metadata,
  service_tier: serviceTier,
  speed,
  container: refused(LEAVE_OUT),
  inference_geo: refused(LEAVE_OUT),
  user_profile_id: refused(LEAVE_OUT),
  workspace_id: refused(LEAVE_OUT),
  diagnostics: dropped,
  ...BETA_FIELDS,
}

/** The names of the fields that have a verdict of their own. */
export const MESSAGES_FIELD_NAMES: readonly string[] = Object.keys(FIELDS)

/** Makes the fields of a chat request. Throws `invalid_request` for what has no translation. */
export function translateFields(draft: ChatRequestDraft, model: string): ChatFields {
  const messages = conversationOf(draft)
  draft.set('model', model, 'model')
  draft.set('messages', messages, 'messages')
  applyFieldTable(draft.source, FIELDS, draft)
  switchThinkingOff(draft)
  return { ...draft.fields, model, messages }
}

function maximum(value: unknown, draft: ChatRequestDraft): void {
  if (value === 0) draft.verdicts.refuse('max_tokens', 'The upstream has no way to only warm its cache.')
  draft.set(draft.facts.maxTokensField, value, 'max_tokens')
}

/** As chat upstreams have it. */
const MOST_STOPS = 4

function stops(value: unknown, draft: ChatRequestDraft): void {
  const path = 'stop_sequences'
  const texts = listAt(value, path).map((text, index) => textAt(text, `${path}[${index}]`))
  if (texts.length > MOST_STOPS) draft.verdicts.refuse(path, `Send at most ${MOST_STOPS} of them.`)
  if (texts.length > 0) draft.set('stop', texts, path)
}

/** Usage is always asked for: the last events of a message have it. */
function stream(value: unknown, draft: ChatRequestDraft): void {
  if (value !== true) return
  draft.set('stream', true, 'stream')
  draft.set('stream_options', { include_usage: true }, 'stream')
}

/** The members of each form of `thinking`. */
export const THINKING_FORMS = {
  enabled: { type: 'read', budget_tokens: 'read', display: 'drop' },
  adaptive: { type: 'read', display: 'drop' },
  disabled: { type: 'read' },
} as const satisfies Record<string, MemberTable>

type ThinkingForm = keyof typeof THINKING_FORMS

const isThinkingForm = (type: string): type is ThinkingForm => Object.hasOwn(THINKING_FORMS, type)

function thinking(value: unknown, draft: ChatRequestDraft): void {
  const form = objectAt(value, 'thinking')
  const type = textAt(form['type'], 'thinking.type')
  if (!isThinkingForm(type)) draft.verdicts.refuse('thinking.type', 'Send enabled, adaptive or disabled.')
  draft.checkMembers(form, 'thinking', THINKING_FORMS[type])
  if (type === 'disabled') {
    if (draft.facts.thinking === 'adaptive') setEffort('none', 'thinking', draft)
    return
  }
  const budget = type === 'enabled' ? budgetIn(form) : undefined
  // A model that does not think answers all the same.
  if (draft.facts.thinking === 'none') draft.verdicts.drop('thinking')
  else if (budget === undefined) thinkAdaptively(draft)
  else thinkWithin(budget, draft)
}

function budgetIn({ budget_tokens: budget }: Members): number {
  if (typeof budget !== 'number') throw wrongShape('thinking.budget_tokens', 'an integer', budget)
  return budget
}

function thinkWithin(budgetTokens: number, draft: ChatRequestDraft): void {
  const path = 'thinking.budget_tokens'
  draft.verdicts.approximate(path)
  // An effort that is asked for by its name says more than a budget.
  if (effortIn(draft) === undefined) setEffort(effortFor(budgetTokens), path, draft)
}

/** Models that take the effort `none` have it by default: without another one they would not think. */
function thinkAdaptively(draft: ChatRequestDraft): void {
  if (effortIn(draft) !== undefined || draft.facts.efforts?.includes('none') !== true) return
  // First: beside tools that keep the model from thinking, a named effort is no way out.
  setEffort('medium', 'thinking', draft)
  draft.verdicts.approximate('thinking', 'Send output_config.effort')
}

function setEffort(asked: string, path: string, draft: ChatRequestDraft): void {
  const efforts = effortsOf(draft.facts, hasTools(draft))
  draft.set('reasoning_effort', effortTaken(asked, path, efforts, draft.verdicts), path)
}

const hasTools = ({ source: { tools } }: ChatRequestDraft): boolean => Array.isArray(tools) && tools.length > 0

/** There are upstreams that take tools on no other terms. */
function switchThinkingOff(draft: ChatRequestDraft): void {
  if (draft.fields['reasoning_effort'] !== undefined || !isKeptFromThinking(draft.facts, hasTools(draft))) return
  // Without the field, a messages client expects no thoughts.
  if (!isAbsent(draft.source['thinking'])) draft.verdicts.approximate('thinking')
  draft.set('reasoning_effort', 'none', 'thinking')
}

function effortIn({ source }: ChatRequestDraft): unknown {
  const config = source['output_config']
  return isRecord(config) ? (config['effort'] ?? undefined) : undefined
}

/** The members of `output_config`. */
export const OUTPUT_MEMBERS: MemberTable = {
  effort: 'read',
  format: 'read',
  // By it the model plans what it does in all, of which chat models know nothing.
  task_budget: { refused: 'Leave it out, and limit each answer by max_tokens.' },
}

function outputConfig(value: unknown, draft: ChatRequestDraft): void {
  const path = 'output_config'
  const config = objectAt(value, path)
  draft.checkMembers(config, path, OUTPUT_MEMBERS)
  if (!isAbsent(config['effort'])) effort(textAt(config['effort'], `${path}.effort`), draft)
  translateFormat(config['format'], ['output_config', 'format'], draft)
}

function effort(value: string, draft: ChatRequestDraft): void {
  const { source, facts, verdicts } = draft
  const isThinkingOff = isRecord(source['thinking']) && source['thinking']['type'] === 'disabled'
  // In chat it is that of thinking and of nothing else.
  if (facts.thinking === 'none' || isThinkingOff) verdicts.drop('output_config.effort')
  else setEffort(value, 'output_config.effort', draft)
}

export const METADATA_MEMBERS: MemberTable = { user_id: 'read' }

/** As chat upstreams have it; messages allow four times as many. */
const LONGEST_USER_CHARACTERS = 64

function metadata(value: unknown, draft: ChatRequestDraft): void {
  const members = objectAt(value, 'metadata')
  draft.checkMembers(members, 'metadata', METADATA_MEMBERS)
  if (isAbsent(members['user_id'])) return
  const path = 'metadata.user_id'
  const userId = textAt(members['user_id'], 'metadata.user_id')
  if (userId.length <= LONGEST_USER_CHARACTERS) {
    draft.set('safety_identifier', userId, path)
    return
  }
  draft.verdicts.approximate(path)
  draft.set('safety_identifier', hash('sha256', userId), path)
}

/** The words of chat for each `service_tier`. */
export const SERVICE_TIERS: Readonly<Record<string, string>> = { auto: 'auto', standard_only: 'default' }

function serviceTier(value: unknown, draft: ChatRequestDraft): void {
  const name = textAt(value, 'service_tier')
  const tier = Object.hasOwn(SERVICE_TIERS, name) ? SERVICE_TIERS[name] : undefined
  if (tier === undefined) draft.verdicts.refuse('service_tier', 'Send auto or standard_only.')
  draft.set('service_tier', tier, 'service_tier')
}

function speed(value: unknown, { verdicts }: ChatRequestDraft): void {
  if (value === 'standard') verdicts.drop('speed')
  else verdicts.refuse('speed', LEAVE_OUT)
}
