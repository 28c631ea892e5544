import { GatewayError } from '../../../core/errors.js'
import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import { mediaTokensIn, tokensOf } from '../../../core/token-counter.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { MessagesFields } from '../../messages-wire.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Translator } from '../../translator.js'
import { type AnswerContext, messageTextOf } from './answer.js'
import { MessageEvents } from './events.js'
import { type Members, RequestDraft } from './request-draft.js'
import { translateFields } from './request.js'

/** Serves `/v1/messages` by an upstream that speaks chat completions. */
export const messagesOverChat: Translator<MessagesFields, ChatFields> = (body, target, verdicts) => {
  const { model } = body.fields
  const draft = new RequestDraft({ ...body.fields }, new JsonTexts(body.bytes), target.facts, verdicts)
  const fields = translateFields(draft, target.upstreamModel)
  const context: AnswerContext = {
    model,
    requestId: target.requestId,
    seals: target.seals,
    toolNames: draft.toolNames,
    inputTokens: () => estimateInputTokens(body.fields),
  }
  return {
    request: JsonBody.written(jsonTextOf(fields), fields),
    response: (answer) => messageTextOf(answer, context),
    events: () => new MessageEvents(context, target.memory),
    error: (error) => withCallersPath(error, draft),
  }
}

/** An upstream names its own field, which the caller does not know. */
function withCallersPath(error: GatewayError, draft: RequestDraft): GatewayError {
  const { param, ...details } = error.details
  if (param === undefined) return error
  const path = draft.callerPath(param)
  return new GatewayError(error.kind, error.message, path === undefined ? details : { ...details, param: path })
}

/** What stands around each message. */
const TOKENS_PER_MESSAGE = 4

/** Roughly the tokens of the prompt of a messages request: system, tools, messages and media. */
export function estimateInputTokens(fields: object): number {
  const { system, tools, messages } = fields as Members
  const spoken: readonly unknown[] = Array.isArray(messages) ? messages : []
  const framing = (spoken.length + 1) * TOKENS_PER_MESSAGE
  return framing + textTokens(system) + jsonTokens(tools) + textTokens(spoken) + mediaTokensIn([system, spoken])
}

const jsonTokens = (value: unknown): number =>
  value === undefined || value === null ? 0 : tokensOf(JSON.stringify(value))

/** Members that say what something is, or that no model reads. */
const LABELS: ReadonlySet<string> = new Set([
  'type',
  'role',
  'id',
  'tool_use_id',
  'cache_control',
  'media_type',
  'citations',
])
/** Sources whose cost cannot be seen in their characters, and what is left out of the conversation. */
const UNCOUNTED: ReadonlySet<unknown> = new Set(['base64', 'url', 'file', 'thinking', 'redacted_thinking'])

function textTokens(value: unknown): number {
  if (typeof value === 'string') return tokensOf(value)
  if (Array.isArray(value)) return value.reduce((sum: number, member) => sum + textTokens(member), 0)
  if (!isRecord(value) || UNCOUNTED.has(value['type'])) return 0
  let tokens = 0
  for (const name in value) {
    if (!LABELS.has(name)) tokens += name === 'input' ? jsonTokens(value[name]) : textTokens(value[name])
  }
  return tokens
}
