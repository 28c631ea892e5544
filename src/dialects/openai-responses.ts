import { ProviderResponse } from '../core/byte-stream.js'
import type { JsonBody, ModelFields } from '../core/json-body.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { framesOf, jsonOf } from '../core/sse.js'
import { DeltaCounter, mediaTokensIn, tokensOf } from '../core/token-counter.js'
import { RelayedUsage, reportedUsage, withUsageFromEnds } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { eventStreamResponse, type HeaderAllowList, jsonResponse } from '../upstream/upstream-response.js'
import {
  HeldEnd,
  idsOf,
  isLastEvent,
  isLastLine,
  KEPT_RESPONSE_BYTES,
  type KeepResponse,
  LAST_EVENT_MARKS,
  type ResponseIds,
} from './kept-answers.js'
import type { OpenAIAttempt } from './openai-wire.js'

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

/** A request for a response, and what is to become of its answer. */
export interface ResponsesCall extends ResponsesQuestion {
  /** Absent where nothing is kept of it. */
  readonly keep: KeepResponse | undefined
}

/** Named events, LF, no `[DONE]`. */
const RESPONSES_EVENTS: SseDialect = { completionMarks: LAST_EVENT_MARKS, errorMark: 'event: error' }

const isText = (value: unknown): value is string => typeof value === 'string'

/** What an upstream that failed, and reports nothing, has used. */
const NOTHING: Usage = { units: { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, estimated: true }

/** What a response says that it has used; undefined where that is to be estimated. */
const usageIn = ({ usage, status }: Readonly<Record<string, unknown>>): Usage | undefined =>
  reportedUsage(usage) ?? (status === 'failed' ? NOTHING : undefined)

/** Members of items, and of their parts, in which text stands. */
const TEXT_MEMBERS = ['content', 'text', 'refusal', 'summary', 'arguments', 'input', 'output'] as const

function textTokensIn(value: unknown): number {
  if (isText(value)) return tokensOf(value)
  if (Array.isArray(value)) return value.reduce<number>((sum, part: unknown) => sum + textTokensIn(part), 0)
  if (!isRecord(value)) return 0
  return TEXT_MEMBERS.reduce((sum, name) => sum + textTokensIn(value[name]), 0)
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

/**
 * Counts the answer and looks for its last event, line by line, as the relay walks through the lines anyway: a search of its own in
 * each piece costs ten times as much as all of that. Only the last event is parsed; every frame passes untouched.
 */
class ResponseEvents implements FrameCounter {
  private readonly deltas = new DeltaCounter()
  private hasLast = false
  private found: ResponseIds | undefined

  constructor(private readonly usage: RelayedUsage) {}

  get count(): number {
    return this.deltas.count
  }

  checkpoint(): void {
    this.deltas.checkpoint()
  }

  rollBack(): void {
    this.deltas.rollBack()
  }

  line(bytes: Buffer, start: number, end: number): void {
    if (isLastLine(bytes, start, end)) this.hasLast = true
    else this.deltas.line(bytes, start, end)
  }

  /** Called with frames whose lines have been shown. */
  readonly filter = (frames: Buffer): Buffer => {
    if (this.hasLast) this.read(frames)
    return frames
  }

  /** Once. */
  readonly takeIds = (): ResponseIds | undefined => {
    const { found } = this
    this.found = undefined
    return found
  }

  private read(frames: Buffer): void {
    this.hasLast = false
    for (const frame of framesOf(frames)) {
      const response = isLastEvent(frame) ? jsonOf(frame)?.['response'] : undefined
      if (!isRecord(response)) continue
      const used = usageIn(response)
      if (used !== undefined) this.usage.report(used, true)
      this.found = idsOf(response)
    }
  }
}

/** Events by other names say that the connection is alive. */
const EVENT_NAME = /^event: ?(response\.[\w.]+)/m
const LONGEST_NAME = 64

/**
 * Whether an item of the answer has ended and no other begun: the figures come with the event that follows the last item, and an
 * event that begins another one shows that there is more to be made.
 */
function isBetweenItems(tail: Buffer): boolean {
  let last: string | undefined
  for (const frame of framesOf(tail)) last = EVENT_NAME.exec(frame.toString('latin1', 0, LONGEST_NAME))?.[1] ?? last
  return last === 'response.output_item.done'
}

const FIRST_ID = /^\s*\{\s*"id"\s*:\s*"([\w-]{1,128})"/

/** Of an answer that is too large to be held: its id stands first. */
function firstId(chunk: Buffer): ResponseIds | undefined {
  const [, responseId] = FIRST_ID.exec(chunk.toString('latin1', 0, 1024)) ?? []
  return responseId === undefined ? undefined : { responseId, itemIds: [] }
}

/** The answer to a request for a response: bytes in, bytes out. */
export async function relayResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  { body, keep }: ResponsesCall,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  if (body.fields.stream === true) return await streamOf(response, allowed, body.fields, keep, context)
  const heldBytes = keep === undefined ? undefined : KEPT_RESPONSE_BYTES
  const { response: answer, value = {} } = await jsonResponse(response, allowed, heldBytes)
  const { status, headers, body: bytes } = answer
  const usage = new RelayedUsage()
  if (!Buffer.isBuffer(bytes)) {
    usage.estimator = new ResponseEstimate(body.fields)
    const held = keep === undefined ? bytes : new HeldEnd(bytes, firstId, keep)
    return withUsageFromEnds(new ProviderResponse(status, headers, held, usage), usage)
  }
  usage.reportedUsage = usageIn(value)
  if (usage.reportedUsage === undefined) usage.estimator = new ResponseEstimate(body.fields, outputOf(value))
  const ids = idsOf(value)
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
  fields: ResponsesFields,
  keep: KeepResponse | undefined,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const usage = new RelayedUsage()
  const events = new ResponseEvents(usage)
  usage.estimator = new ResponseEstimate(fields, events)
  context.record.usage = usage
  const figures = { areKnown: () => usage.reportedUsage !== undefined, areNext: isBetweenItems }
  const dialect = { ...RESPONSES_EVENTS, secret: context.credentials, deltas: events, figures }
  const answer = await eventStreamResponse(response, allowed, dialect, { usage, filter: events.filter })
  const { status, headers, body, onFailure } = answer
  if (keep === undefined || Buffer.isBuffer(body)) return answer
  return new ProviderResponse(status, headers, new HeldEnd(body, events.takeIds, keep), usage, onFailure)
}
