import { JsonBody } from '../../../core/json-body.js'
import { type JsonText, JsonTexts, jsonTextOf } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { MessagesFields } from '../../messages-wire.js'
import type { ChatFields } from '../../openai-wire.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { isAbsent, type Members, textAt } from '../members.js'
import { Conversation, type Turn } from './conversation.js'
import { judgeFields, maximumTokens, stopSequences } from './fields.js'
import { CallersPaths } from './paths.js'
import type { Block, PlacedBlock } from '../to-messages/blocks.js'
import { samplingFields, SERVICE_TIERS } from '../to-messages/request-fields.js'
import { thinkingFields } from './thoughts.js'
import { type ToolFields, toolFields } from './tools.js'

/** A chat request as the upstream gets it, and what its answer is translated with. */
export interface TranslatedRequest {
  readonly request: JsonBody<MessagesFields>
  readonly paths: CallersPaths
  readonly tools: ToolFields
}

export function translatedRequest(
  body: JsonBody<ChatFields>,
  target: TranslationTarget,
  verdicts: Verdicts,
): TranslatedRequest {
  const fields: Members = { ...body.fields }
  judgeFields(fields, verdicts)
  const texts = new JsonTexts(body.bytes)
  const conversation = new Conversation(body.fields.messages, target, verdicts)
  if (conversation.isPrefilled) judgePrefill(conversation, target, verdicts)
  const tools = toolFields(fields, texts, target.facts, verdicts)
  const max_tokens = maximumTokens(fields, target.facts.maxOutputTokens, verdicts)
  const { thinking, effort } = thinkingFields(
    fields['reasoning_effort'],
    {
      facts: target.facts,
      maximumTokens: max_tokens,
      isAllowed: !tools.isForced && !conversation.isPrefilled && !conversation.isThoughtLost,
    },
    verdicts,
  )
  const isThinking = thinking !== undefined && thinking['type'] !== 'disabled'
  const upstreamFields: MessagesFields = {
    model: target.upstreamModel,
    max_tokens,
    ...(conversation.system.length === 0 ? {} : { system: conversation.system.map(({ block }) => block) }),
    messages: conversation.turns.map(({ role, blocks }) => ({ role, content: contentOf(blocks) })),
    ...(tools.tools === undefined ? {} : { tools: tools.tools }),
    ...(tools.tool_choice === undefined ? {} : { tool_choice: tools.tool_choice }),
    ...(thinking === undefined ? {} : { thinking }),
    ...outputConfig(effort, fields['response_format'], texts),
    ...samplingFields(fields, target.facts.sampling, isThinking, verdicts),
    ...otherFields(fields, verdicts),
  }
  const request = JsonBody.written(jsonTextOf(upstreamFields), upstreamFields)
  return { request, tools, paths: new CallersPaths(fields, conversation, tools.paths) }
}

/** One text alone is written as such; a mark of the cache needs a block. */
function contentOf(blocks: readonly PlacedBlock[]): string | readonly Block[] {
  const [first] = blocks
  const text = blocks.length === 1 && first?.block.type === 'text' ? first.block['text'] : undefined
  return typeof text === 'string' && first?.block['cache_control'] === undefined
    ? text
    : blocks.map(({ block }) => block)
}

/**
 * A last message of the assistant is the beginning of the answer there, and not a turn before it. Models that decide themselves how
 * much they think do not take one.
 */
function judgePrefill(
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
