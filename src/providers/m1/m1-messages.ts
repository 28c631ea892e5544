import { Injectable } from '@nestjs/common'
import { keyCredentials, noOptions } from '../../config/channel-schema.js'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { type GatewayError, scrubbedJson } from '../../core/errors.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { RelayedUsage } from '../../core/usage.js'
import type { SseDialect } from '../../upstream/sse-relay.js'
import { UpstreamClient, type UpstreamResponse } from '../../upstream/upstream-client.js'
import { parseUpstreamError, type UpstreamErrorBody } from '../../upstream/upstream-error.js'
import {
  eventStreamResponse,
  HeaderAllowList,
  jsonResponse,
  estimatedResponse,
} from '../../upstream/upstream-response.js'
import type { AttemptContext, MessagesCall, MessagesProvider, ProviderManifest } from '../contract.js'
import { MessagesEstimate, MessagesUsage, WholeMessage } from './m1-usage.js'

/** Older accounts report an empty balance as a bad request; there is no code to tell it by. */
const EMPTY_BALANCE = /^Your credit balance is too low/

/** Reads `{type: "error", error: {type, message}, request_id}`; the request id becomes ours. */
export function parseM1Error(
  response: UpstreamResponse,
  { requestId, callersKey, credentials }: AttemptContext,
): Promise<GatewayError> {
  return parseUpstreamError(response, {
    read: (body) => readBody(body, requestId),
    callersKey,
    secret: credentials,
  })
}

function readBody(body: Record<string, unknown>, requestId: string): UpstreamErrorBody | undefined {
  const { error } = body
  if (typeof error !== 'object' || error === null) return undefined
  const { message } = error as Record<string, unknown>
  if (typeof message !== 'string') return undefined
  const relayed = { ...body, type: 'error', request_id: requestId }
  return { message, relayable: scrubbedJson(relayed), quota: EMPTY_BALANCE.test(message) }
}

/** The classic interface; the specification's clients send no version. */
const DEFAULT_VERSION = '2023-06-01'

/** The organisation id stays inside. */
const RESPONSE_HEADERS = new HeaderAllowList('anthropic-ratelimit-*', 'anthropic-priority-*')

/** Named events, LF, no `[DONE]`. */
const MESSAGES_EVENTS: SseDialect = { completionMarks: ['event: message_stop'], errorMark: 'event: error' }

/** The messages-style family: bytes in, bytes out. */
@Injectable()
class M1MessagesProvider implements MessagesProvider {
  constructor(private readonly client: UpstreamClient) {}

  async create(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('/v1/messages', messages, context)
    if (messages.body.fields.stream === true) return await streamOf(response, messages.body.fields, context)
    const usage = new RelayedUsage()
    const answer = await estimatedResponse(response, RESPONSE_HEADERS, usage)
    if (usage.figures === undefined) usage.estimator = usageEstimatorOf(answer, messages.body.fields)
    return answer
  }

  async countTokens(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('/v1/messages/count_tokens', messages, context)
    return (await jsonResponse(response, RESPONSE_HEADERS)).response
  }

  private async send(path: string, messages: MessagesCall, context: AttemptContext): Promise<UpstreamResponse> {
    const { body } = messages
    const edits = context.upstreamModel === body.fields.model ? {} : { model: JSON.stringify(context.upstreamModel) }
    const response = await this.client.send(
      {
        method: 'POST',
        path: messages.betaQuery ? `${path}?beta=true` : path,
        headers: requestHeaders(messages, context),
        body: body.edited(edits),
      },
      context.target,
      context,
      context.deadlineAtMs,
    )
    if (response.status === 200) return response
    throw await parseM1Error(response, context)
  }
}

function streamOf(response: UpstreamResponse, fields: object, context: AttemptContext): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage()
  const events = new MessagesUsage(deltas, (found) => {
    usage.figures = found
  })
  usage.estimator = new MessagesEstimate(fields, deltas, events)
  context.record.usage = usage
  const errorMembers = { request_id: context.requestId }
  const dialect = { ...MESSAGES_EVENTS, errorMembers, secret: context.credentials, deltas }
  return eventStreamResponse(response, RESPONSE_HEADERS, dialect, { usage, filter: events.filter })
}

/** Of an answer that has not said what it took, or not yet: what is too large to be held says it at its end. */
const usageEstimatorOf = ({ body }: ProviderResponse, request: object): MessagesEstimate =>
  new MessagesEstimate(request, Buffer.isBuffer(body) ? new WholeMessage(body) : undefined)

function requestHeaders(messages: MessagesCall, { credentials }: AttemptContext): string[] {
  const headers = ['x-api-key', credentials, 'anthropic-version', messages.version ?? DEFAULT_VERSION]
  headers.push('content-type', 'application/json', 'accept', 'application/json')
  if (messages.beta !== undefined) headers.push('anthropic-beta', messages.beta)
  return headers
}

/** M1, the one vendor family of messages-style chat. */
export const M1_MANIFEST: ProviderManifest = {
  name: 'm1',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { messages: M1MessagesProvider },
  defaultModelClass: 'messages',
  models: {
    messages: [
      'claude-haiku-4-5',
      'claude-haiku-4-5-20251001',
      'claude-sonnet-4-5',
      'claude-sonnet-4-5-20250929',
      'claude-sonnet-4-6',
      'claude-sonnet-5',
      'claude-opus-4-5',
      'claude-opus-4-5-20251101',
      'claude-opus-4-6',
      'claude-opus-4-7',
      'claude-opus-4-8',
      'claude-opus-5',
    ],
  },
}
