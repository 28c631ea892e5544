import { Injectable } from '@nestjs/common'
import { keyCredentials, noOptions } from '../../config/channel-schema.js'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { type GatewayError, scrubbedJson } from '../../core/errors.js'
import type { Units, Usage, UsageEstimator } from '../../core/request-context.js'
import { framesOf, jsonOf } from '../../core/sse.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { RelayedUsage, reportedUsage } from '../../core/usage.js'
import { isRecord } from '../../core/validation-rules.js'
import { contentTokens, estimateInputTokens, MESSAGES_EVENTS } from '../../dialects/anthropic-messages.js'
import { withoutOwnThinking } from '../../dialects/translations/own-marks.js'
import type { FrameCounter } from '../../upstream/sse-relay.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { parseUpstreamError, type UpstreamErrorBody } from '../../upstream/upstream-error.js'
import {
  estimatedResponse,
  eventStreamResponse,
  HeaderAllowList,
  jsonResponse,
} from '../../upstream/upstream-response.js'
import type { AttemptContext, MessagesCall, MessagesProvider, ProviderManifest } from '../contract.js'
import { M1_MODEL_FACTS, M1_MODELS, M1_REASONING_MODELS } from './m1-models.js'

const EVENT = /^event: ?message_(start|delta)\r?$/m

/**
 * Reads the usage of a messages stream from the two kinds of frames that carry it. `message_start` knows the input;
 * its output is a beginning, so that until `message_delta` comes, whose figures are totals and replace the earlier
 * ones, the pieces of the answer are counted in its place, one token for each. Frames pass untouched.
 */
export class MessagesUsage implements UsageEstimator {
  private units: Units | undefined

  constructor(
    private readonly deltas: Pick<FrameCounter, 'count'>,
    private readonly found: (usage: Usage, isLast: boolean) => void,
  ) {}

  readonly filter = (frames: Buffer): Buffer => {
    if (frames.includes('message_')) this.read(frames)
    return frames
  }

  estimate(): Usage | undefined {
    if (this.units === undefined) return undefined
    const { output_tokens: reported } = this.units
    const begun = typeof reported === 'number' ? reported : 0
    return { units: { ...this.units, output_tokens: Math.max(begun, this.deltas.count) }, estimated: true }
  }

  private read(frames: Buffer): void {
    for (const frame of framesOf(frames)) {
      const kind = EVENT.exec(frame.toString('utf8', 0, 32))?.[1]
      if (kind === undefined) continue
      const event = jsonOf(frame)
      const message = event?.['message'] as Record<string, unknown> | undefined
      const usage = reportedUsage(event?.['usage'] ?? message?.['usage'])
      if (usage === undefined) continue
      this.units = { ...this.units, ...usage.units }
      if (kind === 'delta') this.found({ units: this.units, estimated: false }, hasStopReason(event?.['delta']))
    }
  }
}

const hasStopReason = (delta: unknown): boolean => isRecord(delta) && typeof delta['stop_reason'] === 'string'

/**
 * What a messages call probably took whose upstream says nothing of it, though its dialect asks for that: texts and
 * tools of the request, and what was counted of the answer, where it is. Nothing is
 * read before the figures are needed.
 */
export class MessagesEstimate implements UsageEstimator {
  constructor(
    private readonly request: object,
    /** Absent where the answer is too large to be held: 0 would say that there was none. */
    private readonly text?: Pick<FrameCounter, 'count'>,
    /** Asked first: it may know more. */
    private readonly reported?: UsageEstimator,
  ) {}

  estimate(): Usage {
    const known = this.reported?.estimate()
    if (known !== undefined) return known
    const output = this.text === undefined ? {} : { output_tokens: this.text.count }
    return { units: { input_tokens: estimateInputTokens(this.request, true), ...output }, estimated: true }
  }

  /** Of a stream its pieces, which are counted anyway. An answer that came whole is looked at for no figure beside its own. */
  countedUnits(): Units | undefined {
    return this.text === undefined ? undefined : { output_tokens: this.text.count }
  }
}

/** Counts a whole answer, when that is asked for: roughly the tokens of its blocks. 0 for what is no message. */
export class WholeMessage {
  constructor(private readonly body: Buffer) {}

  get count(): number {
    try {
      const value: unknown = JSON.parse(this.body.toString())
      return isRecord(value) ? contentTokens(value['content']) : 0
    } catch {
      return 0
    }
  }
}

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

/** The messages-style family: bytes in, bytes out. */
@Injectable()
class M1MessagesProvider implements MessagesProvider {
  constructor(private readonly client: UpstreamClient) {}

  async create(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('/v1/messages', messages, context)
    if (messages.body.fields.stream === true) return await streamOf(response, messages.body.fields, context)
    const usage = new RelayedUsage()
    const answer = await estimatedResponse(response, RESPONSE_HEADERS, usage)
    if (usage.reportedUsage === undefined) usage.estimator = usageEstimatorOf(answer, messages.body.fields)
    return answer
  }

  async countTokens(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('/v1/messages/count_tokens', messages, context)
    return (await jsonResponse(response, RESPONSE_HEADERS)).response
  }

  private async send(path: string, messages: MessagesCall, context: AttemptContext): Promise<UpstreamResponse> {
    const body = withoutOwnThinking(messages.body)
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
  const events = new MessagesUsage(deltas, (found, isLast) => {
    usage.report(found, isLast)
  })
  usage.estimator = new MessagesEstimate(fields, deltas, events)
  context.record.usage = usage
  const errorMembers = { request_id: context.requestId }
  const figures = { areKnown: () => usage.reportedUsage !== undefined, areNext: isBetweenBlocks }
  const dialect = { ...MESSAGES_EVENTS, errorMembers, secret: context.credentials, deltas, figures }
  return eventStreamResponse(response, RESPONSE_HEADERS, dialect, { usage, filter: events.filter })
}

const EVENT_NAME = /^event: ?(\w+)/m

/**
 * Whether a block of the answer has ended and no other begun: the figures come with the event that follows the last block, and
 * an event that begins another one shows that there is more to be made.
 */
function isBetweenBlocks(tail: Buffer): boolean {
  let last: string | undefined
  for (const frame of framesOf(tail)) {
    const name = EVENT_NAME.exec(frame.toString('utf8', 0, 64))?.[1]
    if (name !== undefined && name !== 'ping') last = name
  }
  return last === 'content_block_stop' || last === 'message_delta'
}

/** Of an answer that has not said what it took, or not yet: what is too large to be held says it at its end. */
const usageEstimatorOf = ({ body }: ProviderResponse, request: object): MessagesEstimate =>
  new MessagesEstimate(request, Buffer.isBuffer(body) ? new WholeMessage(body) : undefined)

function requestHeaders(messages: MessagesCall, { credentials }: AttemptContext): string[] {
  const headers = ['x-api-key', credentials, 'anthropic-version', messages.version ?? DEFAULT_VERSION]
  headers.push('content-type', 'application/json', 'accept', 'application/json')
  if (messages.beta !== undefined) headers.push('anthropic-beta', messages.beta)
  if (messages.userProfileId !== undefined) headers.push('anthropic-user-profile-id', messages.userProfileId)
  return headers
}

/** M1, the one vendor family of messages-style chat. */
export const M1_MANIFEST: ProviderManifest = {
  name: 'm1',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { messages: M1MessagesProvider },
  defaultModelClass: 'messages',
  reasoningModels: M1_REASONING_MODELS,
  models: M1_MODELS,
  modelFacts: M1_MODEL_FACTS,
}
