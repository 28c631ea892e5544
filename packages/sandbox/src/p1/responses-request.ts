import { estimateTokens } from '../server/generated-text.js'
import { fieldOf, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { OpenAiRejection, reject } from '../server/openai-errors.js'
import { missing, quotedList } from './chat-field-rules.js'
import { chatUsage } from './chat-completion.js'
import { isStandard, judgeStrictSchema, unsupportedParameter } from './chat-model-rules.js'
import { chatTraits } from './chat-models.js'
import type { ChatRequest } from './chat-request.js'
import { contentText, lastUserText } from './chat-text.js'
import { type P1Family, responsesFamily } from './p1-models.js'
import { judgeCountFields, judgeCreateFields } from './responses-field-rules.js'
import { chatMessages, judgeItems, judgePairs, judgeReasoning, resolveReferences } from './responses-items.js'
import type { ResponseStore } from './responses-store.js'
import { chatToolChoice, chatTools, judgeResponsesTools } from './responses-tools.js'

/** A request that was found good. */
export interface ResponsesRequest {
  readonly body: JsonObject
  readonly model: string
  /** The effort a thinking model thinks with; undefined for the others. */
  readonly effort: string | undefined
  readonly stream: boolean
  readonly background: boolean
  readonly store: boolean
  /** The items of this request, its references resolved. */
  readonly items: readonly JsonObject[]
  /** The items of the conversation so far. */
  readonly context: readonly JsonObject[]
  /** The same request as chat writes it: what is answered is decided by its rules. */
  readonly chat: ChatRequest
  /** Unix seconds. */
  readonly createdAt: number
  readonly inputTokens: number
  readonly cachedTokens: number
}

export interface JudgeOptions {
  readonly acceptUnknownFields: boolean
  readonly responses: ResponseStore
}

/** Judges a request as strictly as the upstream. Throws OpenAiRejection. */
export function judgeResponsesRequest(body: JsonObject, options: JudgeOptions): ResponsesRequest {
  const { model } = body
  if (model === undefined || model === '') missing('model')
  judgeCreateFields(body, options.acceptUnknownFields)
  const request = understand(body, textOf(model), options.responses)
  judgeOutputLimit(body, request.model)
  judgeSampling(request)
  judgeInclude(request)
  return request
}

/** Judges the request for a count of its input. Throws OpenAiRejection. */
export function judgeCountRequest(body: JsonObject, options: JudgeOptions): ResponsesRequest {
  judgeCountFields(body, options.acceptUnknownFields)
  // The model may be left out: most have one tokeniser.
  return understand(body, textOf(body['model'] ?? 'gpt-4o'), options.responses)
}

function understand(body: JsonObject, model: string, responses: ResponseStore): ResponsesRequest {
  const family = responsesFamily(model)
  const effort = judgeEffort(body, model, family)
  judgeResponsesTools(body)
  judgeKnown(body)
  const store = body['store'] !== false
  const previous = body['previous_response_id']
  const context = typeof previous === 'string' ? responses.contextOf(previous) : []
  const judged = judgeItems(body['input'] ?? [])
  judgeReasoning(judged, context, responses)
  const items = resolveReferences(judged, responses, store)
  judgePairs([...context, ...items])
  const chat = chatRequest(body, model, family, effort, [...context, ...items])
  judgeFormat(body, chat.messages)
  const cached = tokensOf(chatRequest(body, model, family, effort, context))
  const request = {
    body,
    model,
    effort,
    stream: body['stream'] === true,
    background: body['background'] === true,
    store,
    items,
    context,
    chat,
    createdAt: Math.floor(Date.now() / 1000),
    inputTokens: tokensOf(chat),
    cachedTokens: context.length > 0 && cached >= CACHE_MINIMUM ? cached - (cached % CACHE_STEP) : 0,
  }
  judgeLength(request)
  return request
}

/** Tokens of a conversation from which on its beginning is cached, and the steps in which it grows. */
const CACHE_MINIMUM = 1024
const CACHE_STEP = 128

function tokensOf(chat: ChatRequest): number {
  const tools = listOf(chat.body['tools'])
  const toolTokens = tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools))
  return Number(chatUsage(chat, 0)['prompt_tokens']) + toolTokens
}

/** The input must be somewhere; what is said to be elsewhere is not, as no such thing can be made here. */
function judgeKnown(body: JsonObject): void {
  const { input, previous_response_id: previous, prompt, conversation } = body
  if (conversation != null && previous != null) {
    const names = "'previous_response_id' and 'conversation'"
    const rule = `Mutually exclusive parameters: ${names}. Ensure you are only providing one of them.`
    reject(rule, null, 'mutually_exclusive_parameters')
  }
  if (conversation != null) {
    const id = textOf(fieldOf(conversation, 'id') ?? conversation)
    throw new OpenAiRejection(404, `Conversation with id '${id}' not found.`, { param: 'conversation' })
  }
  if (prompt != null) {
    throw new OpenAiRejection(404, `Prompt with id '${textOf(fieldOf(prompt, 'id'))}' not found.`, {
      param: 'prompt.id',
    })
  }
  if (input != null || previous != null) return
  const message = `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`
  reject(message, 'input', 'missing_required_parameter')
}

function judgeOutputLimit(body: JsonObject, model: string): void {
  const most = chatTraits(model).maxOutputTokens
  const asked = body['max_output_tokens']
  if (typeof asked !== 'number' || asked <= most) return
  const limit = `This model supports at most ${most} output tokens, whereas you provided ${asked}.`
  reject(`max_output_tokens is too large: ${asked}. ${limit}`, 'max_output_tokens', 'invalid_value')
}

/** Returns the effort in force. Models that can leave thinking do, unless an effort is asked for. */
function judgeEffort(body: JsonObject, model: string, family: P1Family): string | undefined {
  const asked = fieldOf(body['reasoning'], 'effort') ?? undefined
  const { efforts } = chatTraits(model)
  if (family !== 'reasoning-chat') {
    for (const name of ['effort', 'summary', 'generate_summary']) {
      if (fieldOf(body['reasoning'], name) != null) unsupportedParameter(`reasoning.${name}`)
    }
    return undefined
  }
  if (asked === undefined) return ['none', 'medium'].find((effort) => efforts.includes(effort)) ?? efforts.at(0)
  const effort = textOf(asked)
  if (efforts.includes(effort)) return effort
  const supported = `Supported values are: ${quotedList(efforts, 'and')}.`
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. ${supported}`
  reject(message, 'reasoning.effort', 'unsupported_value')
}

function judgeSampling({ body, effort }: ResponsesRequest): void {
  if (effort === undefined || effort === 'none') return
  if (typeof body['temperature'] === 'number' && body['temperature'] !== 1) unsupportedParameter('temperature')
  for (const name of ['top_p', 'top_logprobs']) if (!isStandard(name, body[name])) unsupportedParameter(name)
}

function judgeInclude({ body, effort }: ResponsesRequest): void {
  const included = listOf(body['include'])
  if (effort === undefined && included.includes('reasoning.encrypted_content')) {
    reject('Encrypted content is not supported with this model.', 'include')
  }
  if (effort !== undefined && effort !== 'none' && included.includes('message.output_text.logprobs')) {
    unsupportedParameter('include')
  }
}

function judgeLength({ body, model, inputTokens }: ResponsesRequest): void {
  if (inputTokens <= chatTraits(model).contextTokens || body['truncation'] === 'auto') return
  const advice = 'Please adjust your input and try again.'
  reject(`Your input exceeds the context window of this model. ${advice}`, 'input', 'context_length_exceeded')
}

function judgeFormat(body: JsonObject, messages: readonly JsonObject[]): void {
  const format = fieldOf(body['text'], 'format')
  if (fieldOf(format, 'type') === 'json_schema') {
    judgeStrictSchema(format as JsonObject, 'text.format.schema', 'invalid_json_schema')
  }
  if (fieldOf(format, 'type') !== 'json_object') return
  if (messages.some((message) => /json/i.test(contentText(message['content'])))) return
  const rule = "Response input messages must contain the word 'json' in some form"
  reject(`${rule} to use 'text.format' of type 'json_object'.`, 'input')
}

function chatRequest(
  body: JsonObject,
  model: string,
  family: P1Family,
  effort: string | undefined,
  items: readonly JsonObject[],
): ChatRequest {
  const messages = chatMessages(body['instructions'], items)
  const chatBody = {
    model,
    messages,
    tools: chatTools(body),
    tool_choice: chatToolChoice(body),
    parallel_tool_calls: body['parallel_tool_calls'],
    response_format: chatFormat(fieldOf(body['text'], 'format')),
    reasoning_effort: effort,
    max_completion_tokens: body['max_output_tokens'],
    logprobs: listOf(body['include']).includes('message.output_text.logprobs'),
  }
  return {
    body: chatBody,
    model,
    family,
    messages,
    stream: false,
    audioFormat: undefined,
    callerText: lastUserText(chatBody),
  }
}

function chatFormat(format: unknown): unknown {
  if (fieldOf(format, 'type') !== 'json_schema') return format
  return { type: 'json_schema', json_schema: format }
}
