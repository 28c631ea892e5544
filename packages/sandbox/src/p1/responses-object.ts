import { fieldOf, isObject, type JsonObject } from '../server/json-value.js'
import { reasoningTokens } from './chat-request.js'
import { resolvedModel } from './p1-models.js'
import type { ResponsesRequest } from './responses-request.js'
import { saidBackTools } from './responses-tools.js'

export interface ResponseState {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly output?: readonly JsonObject[]
  /** Tokens of the words, or of the calls. */
  readonly words?: number
  /** Why it is incomplete; absent = the maximum. */
  readonly incompleteReason?: 'max_output_tokens' | 'content_filter'
  readonly error?: JsonObject
}

/** The response as it stands: all that was asked is said back, with the defaults of what was left out. */
export function responseObject(request: ResponsesRequest, id: string, state: ResponseState): JsonObject {
  const { body, model, createdAt } = request
  const { status, output = [], words, error = null } = state
  const isOver = status === 'completed' || status === 'incomplete'
  return {
    id,
    object: 'response',
    created_at: createdAt,
    status,
    background: request.background,
    completed_at: status === 'completed' ? Math.floor(Date.now() / 1000) : null,
    error,
    incomplete_details: status === 'incomplete' ? { reason: state.incompleteReason ?? 'max_output_tokens' } : null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    model: resolvedModel(model),
    output,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body['previous_response_id'] ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    prompt_cache_retention: body['prompt_cache_retention'] ?? null,
    reasoning: reasoning(request),
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: serviceTier(body['service_tier']),
    store: request.store,
    temperature: body['temperature'] ?? 1,
    text: text(body['text']),
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: saidBackTools(body),
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: isOver ? usage(request, words ?? 0) : null,
    user: body['user'] ?? null,
    metadata: body['metadata'] ?? {},
  }
}

const reasoning = ({ body, effort }: ResponsesRequest): JsonObject => ({
  effort: effort ?? null,
  summary: summaryOf(body),
})

/** The summary of the thoughts that is asked for, under its name of today or the one before; null for none. */
export function summaryOf(body: JsonObject): unknown {
  const asked = body['reasoning']
  return fieldOf(asked, 'summary') ?? fieldOf(asked, 'generate_summary') ?? null
}

/** `auto` is what the project is set to; the response says what was used. */
const serviceTier = (asked: unknown): unknown => (asked == null || asked === 'auto' ? 'default' : asked)

function text(asked: unknown): JsonObject {
  const format = fieldOf(asked, 'format')
  const verbosity = fieldOf(asked, 'verbosity') ?? 'medium'
  if (!isObject(format)) return { format: { type: 'text' }, verbosity }
  const isSchema = format['type'] === 'json_schema'
  return { format: isSchema ? { description: null, strict: false, ...format } : format, verbosity }
}

function usage(request: ResponsesRequest, words: number): JsonObject {
  const thought = reasoningTokens(request.chat)
  return {
    input_tokens: request.inputTokens,
    input_tokens_details: { cached_tokens: request.cachedTokens, cache_write_tokens: 0 },
    output_tokens: thought + words,
    output_tokens_details: { reasoning_tokens: thought },
    total_tokens: request.inputTokens + thought + words,
  }
}
