import { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody, ModelFields } from '../core/json-body.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { mediaTokensIn, tokensOf } from '../core/token-counter.js'
import { RelayedUsage, withUsageFromEnds } from '../core/usage.js'
import type { FrameCounter } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { eventStreamResponse, type HeaderAllowList, jsonResponse } from '../upstream/upstream-response.js'
import { firstId, HeldEnd, idsOf, KEPT_RESPONSE_BYTES, type KeepResponse, type ResponseIds } from './kept-answers.js'
import type { OpenAIAttempt } from './openai-wire.js'
import { isBetweenItems, ResponseEvents, RESPONSES_EVENTS } from './response-events.js'
import { type EndOfResponse, isInBackground, textTokensIn, usageIn } from './response-state.js'

/** The fields of a request for a response that the gateway reads; all others are relayed unread. */
export interface ResponsesFields extends ModelFields {
  readonly input?: unknown
  readonly instructions?: string | null
  readonly tools?: readonly unknown[] | null
  readonly stream?: boolean | null
  readonly store?: boolean | null
  readonly previous_response_id?: string | null
}

/** A request that goes on with what the gateway keeps, for a translation. */
export interface ResumedRequest {
  /** Its input is the whole conversation. */
  readonly body: JsonBody<ResponsesFields>
  /** As the caller named it; undefined where only items are referred to. */
  readonly previousResponseId: string | undefined
  /** What the caller calls an item of that input. */
  readonly pathOf: (index: number) => string
}

/** A request for a response, or for the number of its tokens. */
export interface ResponsesQuestion {
  /** As an upstream of this dialect takes it. */
  readonly body: JsonBody<ResponsesFields>
  /** Absent where it refers to nothing that the gateway keeps: then `body` is the same for all. */
  readonly resumed?: ResumedRequest | undefined
}

/**
 * What is done about a response that is made in the background: its upstream works on it, and is paid, also when its
 * caller leaves.
 */
export interface BackgroundResponse {
  /** Called before the request is sent; rejects with what keeps it from being served. */
  readonly admit: () => Promise<void>
  /** Called before the caller gets the id. Never rejects. */
  readonly begun: (ids: ResponseIds) => Promise<void>
  readonly ended: EndOfResponse
}

/** A request for a response, and what is to become of its answer. */
export interface ResponsesCall extends ResponsesQuestion {
  /** Absent where nothing is kept of it. */
  readonly keep: KeepResponse | undefined
  /** Absent where the caller waits for the answer. */
  readonly background?: BackgroundResponse | undefined
}

/** Rules of thumb, as for chat. */
const TOKENS_PER_ITEM = 4
const TOKENS_OF_RESPONSE_HEAD = 3

/** Estimated tokens of a request: texts, tools, pictures, and a constant for each item and for the answer's head. */
export function estimateResponseInput({ input, instructions, tools }: ResponsesFields): number {
  const text = textTokensIn(instructions) + textTokensIn(input) + (tools == null ? 0 : tokensOf(JSON.stringify(tools)))
  const items = Array.isArray(input) ? input.length : 1
  return TOKENS_OF_RESPONSE_HEAD + text + mediaTokensIn(input) + items * TOKENS_PER_ITEM
}

/**
 * Of a request whose upstream has said nothing of its usage, or not yet. What the upstream keeps of a conversation is not seen, and
 * so not counted. Nothing is read before the figures are needed.
 */
class ResponseEstimate implements UsageEstimator {
  constructor(
    private readonly request: ResponsesFields,
    /** Absent where the answer is too large to be held: 0 would say that there was none. */
    private readonly output?: Pick<FrameCounter, 'count'>,
  ) {}

  estimate(): Usage {
    const prompt = estimateResponseInput(this.request)
    if (this.output === undefined) return { units: { input_tokens: prompt }, estimated: true }
    const output = this.output.count
    return { units: { input_tokens: prompt, output_tokens: output, total_tokens: prompt + output }, estimated: true }
  }

  countedUnits(): Units | undefined {
    return this.output === undefined ? undefined : { output_tokens: this.output.count }
  }
}

/** Its answer repeats what was asked, and must be looked into: larger than any body by default. */
const BACKGROUND_RESPONSE_BYTES = 32 * 1024 * 1024

/** Of a response that goes on in the background, or was cancelled there: no fault of the channel. */
const streamEnded = (): GatewayError =>
  new GatewayError('upstream_failed', 'The stream ended before the response had. Ask for the response.', {
    attempt: { phase: 'answered' },
    retryable: false,
  })

function heldBytesOf({ keep, background }: ResponsesCall): number | undefined {
  if (background !== undefined) return BACKGROUND_RESPONSE_BYTES
  return keep === undefined ? undefined : KEPT_RESPONSE_BYTES
}

/** The answer to a request for a response: bytes in, bytes out. */
export async function relayResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  call: ResponsesCall,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const { body, keep, background } = call
  if (body.fields.stream === true) return await streamOf(response, allowed, call, context)
  const heldBytes = heldBytesOf(call)
  const { response: answer, value = {} } = await jsonResponse(response, allowed, heldBytes)
  const { status, headers, body: bytes } = answer
  const usage = new RelayedUsage()
  if (!Buffer.isBuffer(bytes)) {
    usage.estimator = new ResponseEstimate(body.fields)
    const held = keep === undefined ? bytes : new HeldEnd(bytes, firstId, keep)
    return withUsageFromEnds(new ProviderResponse(status, headers, held, usage), usage)
  }
  const ids = idsOf(value)
  if (background !== undefined && isInBackground(value)) {
    if (ids !== undefined) await background.begun(ids)
    return answer
  }
  usage.reportedUsage = usageIn(value)
  if (usage.reportedUsage === undefined) usage.estimator = new ResponseEstimate(body.fields, outputOf(value))
  if (ids !== undefined) await keep?.(ids)
  return new ProviderResponse(status, headers, bytes, usage)
}

const outputOf = ({ output }: Readonly<Record<string, unknown>>): Pick<FrameCounter, 'count'> => ({
  get count() {
    return textTokensIn(output)
  },
})

async function streamOf(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  { body: { fields }, keep, background }: ResponsesCall,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const usage = new RelayedUsage()
  const events = new ResponseEvents(usage, background === undefined ? 'no' : 'asked')
  const estimate = new ResponseEstimate(fields, events)
  usage.estimator = {
    estimate: () => (events.isInBackground ? undefined : estimate.estimate()),
    countedUnits: () => (events.isInBackground ? undefined : estimate.countedUnits()),
  }
  context.record.usage = usage
  const figures = {
    areKnown: () => events.isInBackground || usage.reportedUsage !== undefined,
    areNext: isBetweenItems,
  }
  const endedEarly = (): GatewayError | undefined => (events.isInBackground ? streamEnded() : undefined)
  const dialect = { ...RESPONSES_EVENTS, secret: context.credentials, deltas: events, figures, endedEarly }
  const readers = { usage, filter: events.filter }
  // The id of a response in the background must be learnt, also where its caller has left: nothing is answered before.
  const begins = background === undefined ? {} : { hasBegun: () => events.hasBegun }
  const stream = eventStreamResponse(response, allowed, dialect, { ...readers, ...begins })
  const answer = await onceBegun(stream, events, background)
  const { status, headers, body, onFailure } = answer
  if (Buffer.isBuffer(body)) return answer
  let held = body
  if (background !== undefined) {
    // More came before its first event than is held.
    if (!events.hasBegun) held = new HeldEnd(held, events.takeBegun, background.begun)
    held = new HeldEnd(held, events.takeEnded, background.ended)
  }
  if (keep !== undefined) held = new HeldEnd(held, events.takeIds, keep)
  return held === body ? answer : new ProviderResponse(status, headers, held, usage, onFailure)
}

/** A stream that breaks off together with its first event has begun, too: sent again, it would be made and paid twice. */
async function onceBegun(
  stream: Promise<ProviderResponse>,
  events: ResponseEvents,
  background: BackgroundResponse | undefined,
): Promise<ProviderResponse> {
  const failure = await stream.then(
    () => undefined,
    (error: unknown) => error,
  )
  const begun = events.takeBegun()
  if (begun !== undefined) await background?.begun(begun)
  if (begun === undefined || !(failure instanceof GatewayError)) return await stream
  throw new GatewayError(failure.kind, failure.message, {
    ...failure.details,
    attempt: { phase: 'answered' },
    retryable: false,
  })
}

/**
 * The events of a response that is made in the background. `isContinued`: they begin behind one that the caller has, which is the last where
 * the end of the response is known, and `ended` absent.
 */
export async function relayResumedEvents(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  { ended, isContinued }: { readonly ended: EndOfResponse | undefined; readonly isContinued: boolean },
  credentials: string,
): Promise<ProviderResponse> {
  const events = new ResponseEvents(new RelayedUsage(), 'yes')
  const dialect = {
    ...RESPONSES_EVENTS,
    secret: credentials,
    deltas: events,
    endedEarly: streamEnded,
    mayBeEmpty: isContinued && ended === undefined,
  }
  const answer = await eventStreamResponse(response, allowed, dialect, { filter: events.filter })
  const { status, headers, body, onFailure } = answer
  if (Buffer.isBuffer(body) || ended === undefined) return answer
  return new ProviderResponse(status, headers, new HeldEnd(body, events.takeEnded, ended), undefined, onFailure)
}
