import { type ByteSource, peek, type PeekedSource, type PeekRules, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { UsageReader } from '../core/request-context.js'
import { beginsAsObject, type RelayedUsage, reportedUsage, usageAtEnd, withUsageFromEnds } from '../core/usage.js'
import { KEEP_ALIVE_MS, type FramesFilter, type SseDialect, SseRelay } from './sse-relay.js'
import type { UpstreamResponse } from './exchange.js'

/** Response headers every upstream may pass to its caller. Framing headers are written by the relay itself. */
const RELAYED_FROM_EVERYONE = [
  'content-type',
  'content-disposition',
  'cache-control',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]

/** Upstreams may send any names; only so many decisions are remembered. */
const CACHED_DECISIONS = 256

/**
 * The response headers of one upstream that may reach a caller. Nothing crosses the gateway unless a line here or in a
 * provider names it; hop-by-hop headers can therefore never cross. Names in lower case; a trailing `*` means a prefix.
 */
export class HeaderAllowList {
  private readonly names: ReadonlySet<string>
  private readonly prefixes: readonly string[]
  private readonly decisions = new Map<string, boolean>()

  constructor(...further: readonly string[]) {
    const isPrefix = (name: string): boolean => name.endsWith('*')
    this.names = new Set([...RELAYED_FROM_EVERYONE, ...further.filter((name) => !isPrefix(name))])
    this.prefixes = further.filter(isPrefix).map((name) => name.slice(0, -1))
  }

  /** A fresh object with the allowed ones of an upstream's headers; repeated headers are joined. */
  pick(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
    const kept: Record<string, string> = {}
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || !this.allows(name)) continue
      kept[name] = typeof value === 'string' ? value : value.join(', ')
    }
    return kept
  }

  private allows(name: string): boolean {
    const known = this.decisions.get(name)
    if (known !== undefined) return known
    const isAllowed = this.names.has(name) || this.prefixes.some((prefix) => name.startsWith(prefix))
    if (this.decisions.size < CACHED_DECISIONS) this.decisions.set(name, isAllowed)
    return isAllowed
  }
}

/** Answers up to this size are checked as a whole before the caller sees a byte; larger ones are relayed as they come. */
const CHECKED_RESPONSE_BYTES = 1024 * 1024

export const contentTypeOf = (response: UpstreamResponse): string =>
  String(response.headers['content-type'] ?? '').toLowerCase()

/** Refuses an answer of the wrong kind and lets go of its body. */
export function assertContentType(response: UpstreamResponse, expected: RegExp): void {
  if (expected.test(contentTypeOf(response))) return
  response.body.cancel()
  throw malformedResponse('The upstream answered with an unexpected content type.')
}

interface JsonResponse {
  readonly response: ProviderResponse
  /** The parsed answer, unless it was too large to look at. */
  readonly value?: Record<string, unknown>
}

/**
 * A JSON answer, byte for byte. Broken JSON and a cut are the upstream's failure, found before the caller sees a byte, up to
 * `checkedBytes`.
 */
export async function jsonResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  checkedBytes = CHECKED_RESPONSE_BYTES,
): Promise<JsonResponse> {
  assertJson(response)
  const answer = wholeResponse(response, allowed) ?? (await peekedResponse(response, allowed, checkedBytes))
  return Buffer.isBuffer(answer.body) ? { response: answer, value: parseResponse(answer.body) } : { response: answer }
}

/**
 * The same for an answer of which only the usage is needed. What stands before the usage is not parsed, as the choices may be a
 * megabyte of audio, where the framing has shown that the answer is whole and its two ends are those of an object.
 */
export async function estimatedResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  usage: RelayedUsage,
): Promise<ProviderResponse> {
  assertJson(response)
  const answer =
    wholeResponse(response, allowed, usage) ?? (await peekedResponse(response, allowed, CHECKED_RESPONSE_BYTES, usage))
  if (!Buffer.isBuffer(answer.body)) return withUsageFromEnds(answer, usage)
  const isJudgedByItsEnds = isFramed(response) && beginsAsObject(answer.body)
  const atEnd = isJudgedByItsEnds ? usageAtEnd(answer.body) : undefined
  usage.reportedUsage = reportedUsage(atEnd ?? parseResponse(answer.body)['usage'])
  return answer
}

/** Any other body ends where its connection does, and may have been cut. */
const isFramed = ({ headers }: UpstreamResponse): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

const JSON_TYPE = /^application\/(?:json|[\w.-]+\+json)/

function assertJson(response: UpstreamResponse): void {
  // As nearly every upstream spells it.
  if (response.headers['content-type'] !== 'application/json') assertContentType(response, JSON_TYPE)
}

/** An answer that arrived together with its headers, as short ones do. */
function wholeResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  usage?: UsageReader,
): ProviderResponse | undefined {
  const { complete } = response.body
  return complete && new ProviderResponse(response.status, allowed.pick(response.headers), complete, usage)
}

/** With the whole body, unless it is large. */
async function peekedResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  checkedBytes: number,
  usage?: UsageReader,
): Promise<ProviderResponse> {
  const headers = allowed.pick(response.headers)
  const held = await peek(response.body, { bytes: checkedBytes })
  return new ProviderResponse(response.status, headers, held.complete ?? held, usage)
}

function parseResponse(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Falls through: whatever is not a JSON object is a broken answer.
  }
  throw malformedResponse('The upstream answered with broken JSON.')
}

/** What looks at an event stream while it passes. */
interface StreamReaders {
  /** Absent where nothing is charged for. */
  readonly usage?: UsageReader
  readonly filter?: FramesFilter
  /** Whether the answer has begun, once the filter has seen frames; absent = with the first frame, or after a silence. */
  readonly hasBegun?: () => boolean
}

/** An event stream in its dialect, begun: the first frames have arrived, or the upstream has been silent for a while. */
export async function eventStreamResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  dialect: SseDialect,
  { usage, filter, hasBegun }: StreamReaders,
): Promise<ProviderResponse> {
  assertContentType(response, /^text\/event-stream/)
  const relay = new SseRelay(response.body, dialect, filter)
  const begins = hasBegun === undefined ? FIRST_FRAME : { bytes: 1, until: hasBegun }
  return await eventResponse(response.status, allowed.pick(response.headers), relay, usage, begins)
}

const FIRST_FRAME: PeekRules = { bytes: 1, graceMs: KEEP_ALIVE_MS }

/** Wraps a source of complete event frames into an answer with the headers of an event stream. */
export async function eventResponse(
  status: number,
  passedHeaders: Readonly<Record<string, string>>,
  events: ByteSource,
  usage?: UsageReader,
  begins = FIRST_FRAME,
): Promise<ProviderResponse> {
  const held = await peek(events, begins)
  const headers = {
    ...passedHeaders,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    // Proxies in front of the gateway must not buffer events.
    'x-accel-buffering': 'no',
  }
  return new ProviderResponse(status, headers, held, usage, 'frame')
}

/** Bytes of a file, relayed from the first one on; an empty body is the upstream's failure. Usage goes by what is relayed. */
export async function fileResponse(
  status: number,
  headers: Record<string, string>,
  body: ByteSource,
  usageOf: (relayed: Pick<PeekedSource, 'passedBytes'>) => UsageReader,
): Promise<ProviderResponse> {
  const held = await peek(body, { bytes: 1 })
  if (held.complete?.length === 0) throw malformedResponse('The upstream answered without content.')
  return new ProviderResponse(status, headers, held, usageOf(held))
}

export const malformedResponse = (message: string): GatewayError =>
  new GatewayError('upstream_failed', message, { attempt: { phase: 'answered', channelError: true } })
