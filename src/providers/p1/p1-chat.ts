import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { JsonBody, type JsonEdits } from '../../core/json-body.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { RelayedUsage } from '../../core/usage.js'
import { parseOpenAIError, CHAT_EVENTS } from '../../dialects/openai-wire.js'
import type { SseDialect } from '../../upstream/sse-relay.js'
import { UpstreamClient, type UpstreamResponse } from '../../upstream/upstream-client.js'
import { eventStreamResponse, estimatedResponse, HeaderAllowList } from '../../upstream/upstream-response.js'
import type { AttemptContext, ChatFields, ChatProvider } from '../contract.js'
import { ResponseEstimate, ChatUsageEstimator, ChatUsageFilter } from './p1-chat-usage.js'

/** What P1 may tell the caller beyond the common list; its organisation, project and cookies stay inside. */
export const P1_RESPONSE_HEADERS = new HeaderAllowList('openai-processing-ms', 'openai-version', 'x-ratelimit-*')

/** Request headers for P1: the whole list, as nothing of the caller's own headers travels on. */
export function p1Headers({ credentials }: AttemptContext, contentType: string, accept: string): string[] {
  return ['authorization', `Bearer ${credentials}`, 'content-type', contentType, 'accept', accept]
}

/** `POST /v1/chat/completions` at P1: bytes in, bytes out. */
@Injectable()
export class P1ChatProvider implements ChatProvider {
  constructor(private readonly client: UpstreamClient) {}

  async respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.client.send(
      {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: p1Headers(context, 'application/json', 'application/json'),
        body: body.edited(editsFor(body, context)),
      },
      context.target,
      context,
      context.deadlineAtMs,
    )
    if (response.status !== 200) throw await parseOpenAIError(response, context)
    if (body.fields.stream === true) return await streamOf(response, body.fields, context)
    const usage = new RelayedUsage()
    const answer = await estimatedResponse(response, P1_RESPONSE_HEADERS, usage)
    if (usage.figures === undefined) usage.estimator = usageEstimatorOf(answer, body.fields)
    return answer
  }
}

function streamOf(response: UpstreamResponse, fields: ChatFields, context: AttemptContext): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage(new ChatUsageEstimator(fields, deltas))
  context.record.usage = usage
  const { filter } = new ChatUsageFilter(asksForUsage(fields), (figures) => {
    usage.figures = figures
  })
  const events = { ...eventsFor(fields), secret: context.credentials, deltas }
  return eventStreamResponse(response, P1_RESPONSE_HEADERS, events, { usage, filter })
}

/** Of an answer that has not said what it took, or not yet: spoken ones soon pass the size that is held as a whole. */
const usageEstimatorOf = ({ body }: ProviderResponse, fields: ChatFields): ChatUsageEstimator =>
  new ChatUsageEstimator(fields, Buffer.isBuffer(body) ? new ResponseEstimate(body) : undefined)

/** The finish reason of one choice says nothing about the others. */
const eventsFor = ({ n }: ChatFields): SseDialect =>
  typeof n === 'number' && n > 1 ? { ...CHAT_EVENTS, completionMarks: ['data: [DONE]'] } : CHAT_EVENTS

const asksForUsage = ({ stream_options: options }: ChatFields): boolean => options?.['include_usage'] === true

/** The usage of a stream is reported only on demand, and the gateway always accounts for what it relayed. */
function editsFor(body: JsonBody<ChatFields>, { upstreamModel }: AttemptContext): JsonEdits {
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
