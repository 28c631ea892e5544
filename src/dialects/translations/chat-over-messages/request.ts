import { JsonBody } from '../../../core/json-body.js'
import { type JsonText, JsonTexts, jsonTextOf } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import type { ChatFields } from '../../openai-wire.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { PathMap } from '../caller-paths.js'
import { isAbsent, type Members, textAt } from '../members.js'
import { Conversation, type Turn } from './conversation.js'
import { CHAT_FIELDS, maximumTokens, stopSequences } from './fields.js'
import { applyFieldTable } from '../field-table.js'
import { contentAt } from '../to-messages/blocks.js'
import { samplingFields, SERVICE_TIERS } from '../to-messages/request-fields.js'
import { isThoughtLost } from '../to-messages/thinking-blocks.js'
import { thinkingFields } from './thoughts.js'
import { type ChatTools, chatTools } from './tools.js'

/** A chat request as the upstream gets it, and what its answer is translated with. */
interface TranslatedRequest {
  readonly request: JsonBody<MessagesFields>
  readonly paths: PathMap
  readonly tools: ChatTools
}

export function translatedRequest(
  body: JsonBody<ChatFields>,
  target: TranslationTarget,
  verdicts: Verdicts,
): TranslatedRequest {
  const fields: Members = { ...body.fields }
  const { facts } = target
  applyFieldTable(fields, CHAT_FIELDS, { verdicts })
  const texts = new JsonTexts(body.bytes)
  const paths = fieldPaths(fields)
  const conversation = new Conversation(body.fields.messages, target, verdicts)
  if (conversation.isPrefilled) checkPrefill(conversation, target, verdicts)
  const tools = chatTools(fields, texts, { facts, verdicts, paths })
  const max_tokens = maximumTokens(fields, facts.maxOutputTokens, verdicts)
  const isAllowed = !tools.isForced && !conversation.isPrefilled && !isThoughtLost(conversation.turns, facts)
  const asked = { facts, maximumTokens: max_tokens, isAllowed }
  const { thinking, effort } = thinkingFields(fields['reasoning_effort'], asked, verdicts)
  const isThinking = thinking !== undefined && thinking['type'] !== 'disabled'
  const upstreamFields: MessagesFields = {
    model: target.upstreamModel,
    max_tokens,
    ...conversationFields(conversation, paths),
    ...tools.fields,
    ...(thinking === undefined ? {} : { thinking }),
    ...outputConfig(effort, fields['response_format'], texts),
    ...samplingFields(fields, facts.sampling, isThinking, verdicts),
    ...otherFields(fields, verdicts),
  }
  return { request: JsonBody.written(jsonTextOf(upstreamFields), upstreamFields), tools, paths }
}

/** By the upstream's field: the caller's that it is made of, the first one that is given. */
const CALLERS_FIELDS: readonly (readonly [string, ...string[]])[] = [
  ['model', 'model'],
  ['messages', 'messages'],
  ['stream', 'stream'],
  ['temperature', 'temperature'],
  ['top_p', 'top_p'],
  ['service_tier', 'service_tier'],
  ['max_tokens', 'max_completion_tokens', 'max_tokens'],
  ['stop_sequences', 'stop'],
  ['metadata', 'safety_identifier', 'user'],
  ['thinking', 'reasoning_effort'],
  ['output_config', 'reasoning_effort'],
  ['output_config.format', 'response_format'],
  ['tools', 'tools', 'functions'],
  ['tool_choice', 'tool_choice', 'function_call', 'parallel_tool_calls'],
]

function fieldPaths(fields: Members): PathMap {
  const paths = new PathMap()
  // What is sent where the caller names none.
  paths.set('max_tokens', 'max_completion_tokens')
  for (const [upstream, ...callers] of CALLERS_FIELDS) {
    const given = callers.find((name) => !isAbsent(fields[name]))
    if (given !== undefined) paths.set(upstream, given)
  }
  paths.set('output_config.format.schema', 'response_format.json_schema.schema')
  return paths
}

function conversationFields({ system, turns }: Conversation, paths: PathMap): Pick<MessagesFields, 'messages'> {
  const [first] = system
  if (first !== undefined) paths.set('system', first.path)
  const messages = turns.map(({ role, path, blocks }, index) => {
    paths.set(`messages.${index}`, path)
    return { role, content: contentAt(`messages.${index}.content`, blocks, paths) }
  })
  return { ...(system.length === 0 ? {} : { system: contentAt('system', system, paths) }), messages }
}

/**
 * A last message of the assistant is the beginning of the answer there, and not a turn before it. Models that decide themselves how
 * much they think do not take one.
 */
function checkPrefill(
  { turns }: { readonly turns: readonly Turn[] },
  target: TranslationTarget,
  verdicts: Verdicts,
): void {
  const last = turns.at(-1)
  if (last === undefined) return
  if (target.facts.thinking === 'adaptive')
    verdicts.refuse(last.path, 'End the conversation with a message of the user.')
  verdicts.approximate(last.path)
  const block = last.blocks.at(-1)?.block
  // White space at its end is refused.
  if (typeof block?.['text'] === 'string') block['text'] = block['text'].trimEnd()
}

function outputConfig(effort: string | undefined, format: unknown, texts: JsonTexts): Members {
  const isSchema = isRecord(format) && format['type'] === 'json_schema'
  const schema = isSchema ? texts.at('response_format', 'json_schema', 'schema')?.text : undefined
  if (effort === undefined && schema === undefined) return {}
  const named = effort === undefined ? {} : { effort }
  return { output_config: { ...named, ...formatOf(schema) } }
}

const formatOf = (schema: JsonText | undefined): Members =>
  schema === undefined ? {} : { format: { type: 'json_schema', schema } }

function otherFields(fields: Members, verdicts: Verdicts): Members {
  const stops = stopSequences(fields['stop'], verdicts)
  const tier = SERVICE_TIERS.get(fields['service_tier'])
  const userId = userIdOf(fields)
  return {
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(isAbsent(fields['service_tier']) ? {} : { service_tier: tier }),
    ...(userId === '' ? {} : { metadata: { user_id: userId } }),
    ...(fields['stream'] === true ? { stream: true } : {}),
  }
}

function userIdOf({ safety_identifier: identifier, user }: Members): string {
  if (!isAbsent(identifier)) return textAt(identifier, 'safety_identifier')
  return isAbsent(user) ? '' : textAt(user, 'user')
}
