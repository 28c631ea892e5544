import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody, type JsonEdits } from '../core/json-body.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { DeltaCounter, mediaTokensIn, tokensOf } from '../core/token-counter.js'
import { RelayedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import type { UpstreamClient } from '../upstream/upstream-client.js'
import { estimatedResponse, eventStreamResponse, type HeaderAllowList } from '../upstream/upstream-response.js'
import { ChatUsageFilter, ChoiceEnds } from './chat-usage.js'
import { CHAT_EVENTS, type ChatFields, type OpenAIAttempt, sendOpenAIRequest } from './openai-wire.js'

/** Text members of a message, in any chat dialect. */
const TEXTS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const

/** Estimates the usage of a whole response whose upstream reports none; lazily. */
export class ResponseEstimate {
  constructor(private readonly body: Buffer) {}

  /** Estimated tokens of all choices: texts, tool calls and transcripts. 0 for anything but a chat completion. */
  get count(): number {
    try {
      return messagesIn(JSON.parse(this.body.toString())).reduce((sum, message) => sum + tokensIn(message), 0)
    } catch {
      // Invalid, or nested too deeply to be serialized.
      return 0
    }
  }
}

function messagesIn(answer: unknown): readonly Record<string, unknown>[] {
  const choices = isRecord(answer) ? answer['choices'] : undefined
  if (!Array.isArray(choices)) return []
  return choices
    .map((choice: unknown) => (isRecord(choice) ? choice['message'] : undefined))
    .filter((message) => isRecord(message))
}

function tokensIn(message: Record<string, unknown>): number {
  const { tool_calls: calls, audio } = message
  const texts = [...TEXTS.map((name) => message[name]), isRecord(audio) ? audio['transcript'] : undefined]
  const words = texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? tokensOf(text) : 0), 0)
  return words + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

/** A rule of thumb of the vendors. */
const TOKENS_PER_MESSAGE = 4
const TOKENS_OF_RESPONSE_HEAD = 3

interface Prompt {
  readonly messages: readonly unknown[]
  readonly tools?: unknown
}

/**
 * Estimated prompt tokens of a chat completion: four ASCII characters, or one character of any other
 * script, per token; a constant for each message, for the response's head, and for an image or a recording, whose cost cannot be
 * seen in its bytes.
 */
export function estimatePromptTokens({ messages, tools }: Prompt): number {
  let tokens = TOKENS_OF_RESPONSE_HEAD + (tools == null ? 0 : tokensOf(JSON.stringify(tools))) + mediaTokensIn(messages)
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + (isRecord(message) ? promptTokensIn(message) : 0)
  return tokens
}

function promptTokensIn({ content, tool_calls: calls }: Record<string, unknown>): number {
  return tokensOf(textOf(content)) + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/**
 * Estimated usage of a chat completion until its upstream reports it, at the very end: a token for each
 * chunk of the response that has arrived, and the estimated prompt tokens, computed only when needed.
 */
export class ChatUsageEstimator implements UsageEstimator {
  constructor(
    private readonly request: Pick<ChatFields, 'messages' | 'tools'>,
    private readonly deltas?: Pick<FrameCounter, 'count'>,
  ) {}

  estimate(): Usage {
    const prompt = estimatePromptTokens(this.request)
    const units = this.deltas === undefined ? { prompt_tokens: prompt } : tokens(prompt, this.deltas.count)
    return { units, estimated: true }
  }

  /** For a stream its chunks, which are counted anyway. A whole response with reported usage is not estimated. */
  countedUnits(): Units | undefined {
    return this.deltas === undefined ? undefined : { completion_tokens: this.deltas.count }
  }
}

const tokens = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

interface ChatUpstream {
  readonly path: `/${string}`
  /** Names and values in turn; complete, as none of the client's headers are forwarded. */
  readonly headers: readonly string[]
  readonly responseHeaders: HeaderAllowList
}

/** A chat completion at an upstream of this dialect: bytes in, bytes out. Rejects with the upstream's `GatewayError`. */
export async function completeChat(
  client: UpstreamClient,
  upstream: ChatUpstream,
  body: JsonBody<ChatFields>,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const { path, headers, responseHeaders } = upstream
  const request = { method: 'POST', path, headers, body: body.edited(editsFor(body, context)) } as const
  const response = await sendOpenAIRequest(client, request, context)
  if (body.fields.stream === true) return await streamOf(response, upstream, body.fields, context)
  const usage = new RelayedUsage()
  const answer = await estimatedResponse(response, responseHeaders, usage)
  if (usage.reportedUsage === undefined) usage.estimator = usageEstimatorOf(answer, body.fields)
  return answer
}

function streamOf(
  response: UpstreamResponse,
  { responseHeaders }: ChatUpstream,
  fields: ChatFields,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage(new ChatUsageEstimator(fields, deltas))
  context.record.usage = usage
  const ends = new ChoiceEnds(fields.n)
  const { filter } = new ChatUsageFilter(asksForUsage(fields), (reported, place) => {
    usage.report(reported, ends.areBefore(place))
  })
  const figures = { areKnown: () => usage.reportedUsage !== undefined, areNext: ends.areAllSeen }
  const events = { ...eventsFor(fields), secret: context.credentials, deltas, figures }
  return eventStreamResponse(response, responseHeaders, events, { usage, filter: ends.watching(filter) })
}

/** Estimator for a response without reported usage, or whose usage is still to come: audio soon exceeds the buffered size. */
const usageEstimatorOf = ({ body }: ProviderResponse, fields: ChatFields): ChatUsageEstimator =>
  new ChatUsageEstimator(fields, Buffer.isBuffer(body) ? new ResponseEstimate(body) : undefined)

/** The finish reason of one choice says nothing about the others. */
const eventsFor = ({ n }: ChatFields): SseDialect =>
  typeof n === 'number' && n > 1 ? { ...CHAT_EVENTS, completionMarks: ['data: [DONE]'] } : CHAT_EVENTS

const asksForUsage = ({ stream_options: options }: ChatFields): boolean => options?.['include_usage'] === true

/** The usage of a stream is reported only on demand, and the gateway always accounts for what it relayed. */
function editsFor(body: JsonBody<ChatFields>, { upstreamModel }: OpenAIAttempt): JsonEdits {
  const { fields } = body
  const edits: Record<string, string> = {}
  if (upstreamModel !== fields.model) edits['model'] = JSON.stringify(upstreamModel)
  if (fields.stream === true && !asksForUsage(fields)) edits['stream_options'] = optionsWithUsage(body)
  return edits
}

/** The caller's other stream options keep their spelling. */
function optionsWithUsage(body: JsonBody<ChatFields>): string {
  const given = body.fields.stream_options == null ? '{}' : (body.textOf('stream_options') ?? '{}')
  return JsonBody.parse(Buffer.from(given)).edited({ include_usage: 'true' }).toString()
}
