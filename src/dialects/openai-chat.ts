import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody, type JsonEdits } from '../core/json-body.js'
import type { AttemptRecord } from '../core/request-context.js'
import { DeltaCounter } from '../core/token-counter.js'
import { RelayedUsage } from '../core/usage.js'
import type { SseDialect } from '../upstream/sse-relay.js'
import type { ExchangeContext, UpstreamClient, UpstreamResponse, UpstreamTarget } from '../upstream/upstream-client.js'
import { estimatedResponse, eventStreamResponse, type HeaderAllowList } from '../upstream/upstream-response.js'
import { ChatUsageEstimator, ChatUsageFilter, ResponseEstimate } from './openai-chat-usage.js'
import { CHAT_EVENTS, type ChatFields, parseOpenAIError, type SentCredentials } from './openai-wire.js'

/** An upstream that speaks this dialect. */
export interface ChatUpstream {
  readonly path: `/${string}`
  /** Names and values in turn: the whole list, as nothing of the caller's own headers travels on. */
  readonly headers: readonly string[]
  readonly responseHeaders: HeaderAllowList
}

/** What is known of the attempt. */
export interface ChatAttempt extends ExchangeContext, SentCredentials {
  readonly record: AttemptRecord
  readonly target: UpstreamTarget
  readonly upstreamModel: string
  /** On the performance clock. */
  readonly deadlineAtMs: number
}

/** A chat completion at an upstream of this dialect: bytes in, bytes out. Rejects with the upstream's `GatewayError`. */
export async function completeChat(
  client: UpstreamClient,
  upstream: ChatUpstream,
  body: JsonBody<ChatFields>,
  context: ChatAttempt,
): Promise<ProviderResponse> {
  const { path, headers, responseHeaders } = upstream
  const response = await client.send(
    { method: 'POST', path, headers, body: body.edited(editsFor(body, context)) },
    context.target,
    context,
    context.deadlineAtMs,
  )
  if (response.status !== 200) throw await parseOpenAIError(response, context)
  if (body.fields.stream === true) return await streamOf(response, upstream, body.fields, context)
  const usage = new RelayedUsage()
  const answer = await estimatedResponse(response, responseHeaders, usage)
  if (usage.figures === undefined) usage.estimator = usageEstimatorOf(answer, body.fields)
  return answer
}

function streamOf(
  response: UpstreamResponse,
  { responseHeaders }: ChatUpstream,
  fields: ChatFields,
  context: ChatAttempt,
): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage(new ChatUsageEstimator(fields, deltas))
  context.record.usage = usage
  const { filter } = new ChatUsageFilter(asksForUsage(fields), (figures) => {
    usage.figures = figures
  })
  const events = { ...eventsFor(fields), secret: context.credentials, deltas }
  return eventStreamResponse(response, responseHeaders, events, { usage, filter })
}

/** Of an answer that has not said what it took, or not yet: spoken ones soon pass the size that is held as a whole. */
const usageEstimatorOf = ({ body }: ProviderResponse, fields: ChatFields): ChatUsageEstimator =>
  new ChatUsageEstimator(fields, Buffer.isBuffer(body) ? new ResponseEstimate(body) : undefined)

/** The finish reason of one choice says nothing about the others. */
const eventsFor = ({ n }: ChatFields): SseDialect =>
  typeof n === 'number' && n > 1 ? { ...CHAT_EVENTS, completionMarks: ['data: [DONE]'] } : CHAT_EVENTS

const asksForUsage = ({ stream_options: options }: ChatFields): boolean => options?.['include_usage'] === true

/** The usage of a stream is reported only on demand, and the gateway always accounts for what it relayed. */
function editsFor(body: JsonBody<ChatFields>, { upstreamModel }: ChatAttempt): JsonEdits {
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
