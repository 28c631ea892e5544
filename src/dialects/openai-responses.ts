import { type ByteSink, type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import type { GatewayError } from '../core/errors.js'
import type { ModelFields } from '../core/json-body.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { framesOf, jsonOf } from '../core/sse.js'
import { BYTES_PER_TOKEN, DeltaCounter } from '../core/token-counter.js'
import { RelayedUsage, reportedUsage, withUsageFromTail } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { eventStreamResponse, type HeaderAllowList, jsonResponse } from '../upstream/upstream-response.js'
import type { OpenAIAttempt } from './openai-wire.js'

/** The fields of a request for a response that the gateway reads; all others are relayed unread. */
export interface ResponsesFields extends ModelFields {
  readonly input?: unknown
  readonly stream?: boolean | null
  readonly store?: boolean | null
  readonly previous_response_id?: string | null
}

/** The ids of a response, and of the items of its output. */
export interface ResponseIds {
  readonly responseId: string
  readonly itemIds: readonly string[]
}

/** Called before the end of an answer reaches the caller, who may ask for the response from then on. Never rejects. */
export type KeepResponse = (ids: ResponseIds) => Promise<void>

/** Events with the whole response, the last of a stream. */
const LAST_EVENTS = ['response.completed', 'response.incomplete', 'response.failed'] as const

/** Named events, LF, no `[DONE]`. */
const RESPONSES_EVENTS: SseDialect = {
  completionMarks: LAST_EVENTS.map((name) => `event: ${name}`),
  errorMark: 'event: error',
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** Undefined for what is no response. */
function idsOf(response: Readonly<Record<string, unknown>>): ResponseIds | undefined {
  const { id, output } = response
  if (!isText(id)) return undefined
  const items: readonly unknown[] = Array.isArray(output) ? output : []
  return { responseId: id, itemIds: items.map((item) => (isRecord(item) ? item['id'] : undefined)).filter(isText) }
}

/** Of a request whose upstream says nothing of its usage. */
class ResponseEstimate implements UsageEstimator {
  constructor(
    private readonly bodyBytes: number,
    private readonly deltas?: Pick<FrameCounter, 'count'>,
  ) {}

  estimate(): Usage {
    const input = Math.ceil(this.bodyBytes / BYTES_PER_TOKEN)
    const output = this.deltas?.count ?? 0
    return { units: { input_tokens: input, output_tokens: output, total_tokens: input + output }, estimated: true }
  }

  countedUnits(): Units | undefined {
    return this.deltas === undefined ? undefined : { output_tokens: this.deltas.count }
  }
}

/** What an upstream that failed has reported none of. */
const NOTHING: Usage = { units: { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, estimated: true }

/** Reads the last event of a stream, and no other; every frame passes untouched. */
class LastEvent {
  private found: ResponseIds | undefined

  constructor(private readonly usage: RelayedUsage) {}

  readonly filter = (frames: Buffer): Buffer => {
    if (LAST_EVENTS.some((name) => frames.includes(`event: ${name}`))) this.read(frames)
    return frames
  }

  /** Once. */
  takeIds = (): ResponseIds | undefined => {
    const { found } = this
    this.found = undefined
    return found
  }

  private read(frames: Buffer): void {
    for (const frame of framesOf(frames)) {
      const response = frame.includes('event: response.') ? jsonOf(frame)?.['response'] : undefined
      if (!isRecord(response)) continue
      const reported = reportedUsage(response['usage'])
      const used = reported ?? (response['status'] === 'failed' ? NOTHING : undefined)
      if (used !== undefined) this.usage.report(used, true)
      this.found = idsOf(response)
    }
  }
}

/** Holds back what follows from where ids are found, until the response is kept: whoever has the end of it can refer to it. */
class HeldEnd implements ByteSource, ByteSink {
  private sink!: ByteSink
  private kept: Promise<void> | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly idsIn: (chunk: Buffer) => ResponseIds | undefined,
    private readonly keep: KeepResponse,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.source.start(this)
  }

  pause(): void {
    this.source.pause()
  }

  resume(): void {
    this.source.resume()
  }

  cancel(): void {
    this.source.cancel()
  }

  data(chunk: Buffer): void {
    const ids = this.kept === undefined ? this.idsIn(chunk) : undefined
    if (ids !== undefined) this.kept = this.keep(ids)
    this.pass(() => {
      this.sink.data(chunk)
    })
  }

  end(): void {
    this.pass(() => {
      this.sink.end()
    })
  }

  fail(error: GatewayError): void {
    this.pass(() => {
      this.sink.fail(error)
    })
  }

  private pass(step: () => void): void {
    if (this.kept === undefined) step()
    else this.kept = this.kept.then(step)
  }
}

const FIRST_ID = /^\s*\{\s*"id"\s*:\s*"([\w-]{1,128})"/

/** Of an answer that is too large to be looked at as a whole: its id stands first. */
function firstId(chunk: Buffer): ResponseIds | undefined {
  const [, responseId] = FIRST_ID.exec(chunk.toString('latin1', 0, 1024)) ?? []
  return responseId === undefined ? undefined : { responseId, itemIds: [] }
}

/** The answer to a request for a response: bytes in, bytes out. `keep` is absent where nothing of it is kept. */
export async function relayResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  { bodyBytes, isStreamed, keep }: { bodyBytes: number; isStreamed: boolean; keep: KeepResponse | undefined },
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  if (isStreamed) return await streamOf(response, allowed, bodyBytes, keep, context)
  const usage = new RelayedUsage(new ResponseEstimate(bodyBytes))
  const { response: answer, value } = await jsonResponse(response, allowed)
  const { status, headers, body } = answer
  if (value === undefined && !Buffer.isBuffer(body)) {
    const held = keep === undefined ? body : new HeldEnd(body, firstId, keep)
    return withUsageFromTail(new ProviderResponse(status, headers, held, usage), usage)
  }
  usage.reportedUsage = reportedUsage(value?.['usage'])
  const ids = idsOf(value ?? {})
  if (ids !== undefined) await keep?.(ids)
  return new ProviderResponse(status, headers, body, usage)
}

async function streamOf(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  bodyBytes: number,
  keep: KeepResponse | undefined,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage(new ResponseEstimate(bodyBytes, deltas))
  context.record.usage = usage
  const last = new LastEvent(usage)
  const dialect = { ...RESPONSES_EVENTS, secret: context.credentials, deltas }
  const answer = await eventStreamResponse(response, allowed, dialect, { usage, filter: last.filter })
  const { status, headers, body, onFailure } = answer
  if (keep === undefined || Buffer.isBuffer(body)) return answer
  return new ProviderResponse(status, headers, new HeldEnd(body, last.takeIds, keep), usage, onFailure)
}
