import type { JsonBody } from '../../../core/json-body.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import { dropped, type FieldRule, type FieldTable } from '../field-table.js'
import { dropUnknown, isAbsent, type Members, objectAt, textAt } from '../members.js'
import { readConversation } from '../responses/conversation.js'
import { COMMON_FIELDS, readReasoningAsked } from '../responses/request-draft.js'
import { readToolChoice, readTools } from '../responses/tools.js'
import { samplingFields, SERVICE_TIERS } from '../to-messages/request-fields.js'
import { messagesTools } from '../to-messages/tools.js'
import { MessagesConversation } from './messages.js'
import { type MessagesDraft, setThinking } from './messages-draft.js'

type Rule = FieldRule<MessagesDraft>

/** The caller's fields by the upstream's that are made of them, beside those that handlers set. */
const PATHS = { messages: 'input', model: 'model', tools: 'tools', tool_choice: 'tool_choice' }

const FORMAT = new Set(['type', 'name', 'schema', 'strict'])

const TEXT = new Set(['format'])

const text: Rule = (value, draft) => {
  const members = objectAt(value, 'text')
  const { format } = members
  dropUnknown(members, TEXT, 'text', draft.verdicts)
  if (!isAbsent(format)) setFormat(objectAt(format, 'text.format'), draft)
}

/** Its name has no meaning there, and upstreams always keep to the schema. */
function setFormat(format: Members, draft: MessagesDraft): void {
  const { type, schema } = format
  dropUnknown(format, FORMAT, 'text.format', draft.verdicts)
  if (type === 'text') return
  if (type !== 'json_schema') draft.verdicts.refuse('text.format.type', 'Send json_schema.')
  objectAt(schema, 'text.format.schema')
  const spelled = draft.texts.at('text', 'format', 'schema')?.text
  draft.outputConfig['format'] = { type, schema: spelled }
  draft.paths.set('output_config.format', 'text.format')
  draft.paths.set('output_config.format.schema', 'text.format.schema')
}

const serviceTier: Rule = (value, draft, name) => {
  const tier = SERVICE_TIERS.get(value) ?? draft.verdicts.refuse(name, 'Send auto or default.')
  draft.set(name, tier, name)
}

/** The newer name wins. */
const userId: Rule = (value, draft, name) => {
  if (name === 'user' && draft.upstream['metadata'] !== undefined) return
  draft.set('metadata', { user_id: textAt(value, name) }, name)
  draft.paths.set('metadata.user_id', name)
}

const sampling: Rule = (value, { verdicts, paths }, name) => {
  if (name === 'temperature' && Number(value) > 1) verdicts.refuse(name, 'Send at most 1.')
  paths.set(name, name)
}

export const FIELDS: FieldTable<MessagesDraft> = {
  ...COMMON_FIELDS,
  max_output_tokens: (value, draft, name) => {
    draft.maximumTokens = Number(value)
    draft.paths.set('max_tokens', name)
  },
  parallel_tool_calls: (value, draft) => {
    draft.isSerial = value === false
  },
  prompt_cache_key: dropped,
  prompt_cache_options: dropped,
  prompt_cache_retention: dropped,
  reasoning: (value, draft) => {
    draft.reasoning = readReasoningAsked(value, draft)
  },
  safety_identifier: userId,
  service_tier: serviceTier,
  stream: (value, draft, name) => {
    if (value === true) draft.set(name, true, name)
  },
  temperature: sampling,
  text,
  tool_choice: (value, draft) => {
    draft.toolChoice = readToolChoice(value, draft.verdicts)
  },
  tools: (value, draft) => {
    draft.tools = readTools(value, draft)
  },
  top_p: sampling,
  user: userId,
}

/** What is sent, and what its answer is translated with. */
interface MessagesRequest {
  readonly request: JsonBody<MessagesFields>
  /** Names of tools that take a text. */
  readonly customNames: ReadonlySet<string>
}

/** The request as one for a message. Throws `invalid_request` for what has no meaning there. */
export function messagesRequest(draft: MessagesDraft): MessagesRequest {
  const { input, instructions } = draft.body.fields
  for (const [upstream, caller] of Object.entries(PATHS)) draft.paths.set(upstream, caller)
  const conversation = new MessagesConversation(readConversation(instructions, input, draft), draft)
  draft.translateFields(FIELDS)
  const maximumTokens = draft.maximumTokens ?? defaultMaximum(draft)
  const { outputConfig, upstream, target, body, facts, verdicts } = draft
  const tools = messagesTools({ tools: draft.tools, choice: draft.toolChoice, isSerial: draft.isSerial }, draft)
  const isAllowed = !conversation.isThoughtLost && !tools.isForced
  const isThinking = setThinking(draft.reasoning, { maximumTokens, isAllowed }, draft)
  const request = draft.written<MessagesFields>({
    model: target.upstreamModel,
    max_tokens: maximumTokens,
    ...conversation.fields(),
    ...tools.fields,
    ...upstream,
    ...samplingFields({ ...body.fields }, facts.sampling, isThinking, verdicts),
    ...(Object.keys(outputConfig).length === 0 ? {} : { output_config: outputConfig }),
  })
  return { request, customNames: tools.customNames }
}

/** The upstream needs one. */
function defaultMaximum({ verdicts, facts }: MessagesDraft): number {
  verdicts.approximate('max_output_tokens', 'Send max_output_tokens')
  return facts.maxOutputTokens
}
