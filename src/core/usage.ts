import { type ByteSink, type ByteSource, ProviderResponse } from './byte-stream.js'
import type { GatewayError } from './errors.js'
import type { RequestLog, Units, Usage, UsageEstimator, UsageReader } from './request-context.js'
import { scanJsonObject } from './json-body.js'
import { afterSpace, beforeSpace, JSON_BYTES } from './json-spans.js'

const { COMMA, OPEN_BRACE, QUOTE } = JSON_BYTES

/**
 * Called when a request is over, before its log is read: what was counted stands in for what was not reported, and beside
 * what was. `isWhole`: neither side has left before the answer was complete.
 */
export function settleUsage(log: RequestLog, isWhole: boolean): void {
  const { usageReader: reader } = log
  if (reader === undefined) return
  log.usage ??= reader.reportedUsage ?? (isWhole ? reader.earlyUsage : undefined)
  if (log.usage === undefined) log.usage = reader.estimate?.()
  else log.estimate ??= reader.countedUnits?.()
}

/** The usage of an answer that is relayed: the figures are filled in when they pass, an estimator counts meanwhile. */
export class RelayedUsage implements UsageReader {
  reportedUsage: Usage | undefined = undefined
  earlyUsage: Usage | undefined = undefined

  constructor(public estimator?: UsageEstimator) {}

  /** `isLast`: the answer is complete. Some upstreams say figures with every frame, or zeros with the first. */
  report(usage: Usage, isLast: boolean): void {
    if (isLast) this.reportedUsage = usage
    else this.earlyUsage = usage
  }

  estimate(): Usage | undefined {
    const counted = this.estimator?.estimate()
    return counted === undefined || this.earlyUsage === undefined ? counted : larger(this.earlyUsage, counted)
  }

  countedUnits(): Units | undefined {
    return this.estimator?.countedUnits?.()
  }
}

function larger(early: Usage, counted: Usage): Usage {
  const units: Record<string, number | Units> = { ...early.units }
  for (const [name, count] of Object.entries(counted.units)) {
    const said = units[name]
    units[name] = typeof said === 'number' && typeof count === 'number' ? Math.max(said, count) : count
  }
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = units
  if (total !== undefined && typeof prompt === 'number' && typeof completion === 'number')
    units['total_tokens'] = prompt + completion
  return { units, estimated: true }
}

/** Deeper members of a usage object are not counts of any upstream known. */
const MAXIMUM_DEPTH = 3

/**
 * The counts of an upstream's usage object, nested as it nests them, and nothing but numbers: whatever else stands there
 * has no place in a log. The upstream's figures are the truth; explicit zeros stay zeros. (Flat names made of paths would
 * turn every one of these objects into a dictionary, which costs a twentieth of a relayed call.)
 */
export function reportedUsage(usage: unknown): Usage | undefined {
  const units = typeof usage === 'object' && usage !== null ? countsOf(usage, 1) : undefined
  return units === undefined ? undefined : { units, estimated: false }
}

function countsOf(value: object, depth: number): Units | undefined {
  const counts: Record<string, number | Units> = {}
  let isEmpty = true
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name]
    const count = typeof member === 'number' ? member : nestedCounts(member, depth)
    if (count === undefined) continue
    counts[name] = count
    isEmpty = false
  }
  return isEmpty ? undefined : counts
}

const nestedCounts = (member: unknown, depth: number): Units | undefined =>
  typeof member === 'object' && member !== null && depth < MAXIMUM_DEPTH ? countsOf(member, depth + 1) : undefined

/** Upstreams report the usage behind what they have made, or before it; it and what stands beside it fit in here. */
const END_BYTES = 8192

/** The key with its quotes unescaped, as no text of a model can hold it. */
const USAGE_KEY = '"usage"'

/** Whether bytes begin as an object with members does. */
export function beginsAsObject(bytes: Buffer): boolean {
  const brace = afterSpace(bytes, 0)
  return bytes[brace] === OPEN_BRACE && bytes[afterSpace(bytes, brace + 1)] === QUOTE
}

/**
 * What the last member `usage` of a JSON object holds, with no more parsed than what stands from there to the end;
 * undefined when that does not show it. Whatever follows the member, with a brace in front of it, is an object
 * itself exactly when the member is one of the outermost, and nothing of the end is missing or broken.
 */
export function usageAtEnd(bytes: Buffer): unknown {
  const start = bytes.lastIndexOf(USAGE_KEY)
  if (bytes[beforeSpace(bytes, start) - 1] !== COMMA) return undefined
  try {
    return (JSON.parse(`{${bytes.toString('utf8', start)}`) as { readonly usage?: unknown }).usage
  } catch {
    return undefined
  }
}

/** What the outermost member `usage` of a JSON object holds, of which only the beginning is here. */
function usageAtStart(bytes: Buffer): unknown {
  try {
    const span = scanJsonObject(bytes, 'upstream').members.get('usage')
    return span === undefined ? undefined : JSON.parse(bytes.toString('utf8', span.valueStart, span.valueEnd))
  } catch {
    return undefined
  }
}

/** The same answer; when its last byte has passed, the usage at either end is filled in. For JSON too large to be held. */
export function withUsageFromEnds(answer: ProviderResponse, usage: RelayedUsage): ProviderResponse {
  const { status, headers, body, onFailure } = answer
  if (Buffer.isBuffer(body)) return answer
  return new ProviderResponse(status, headers, new UsageAtEnds(body, usage), usage, onFailure)
}

class UsageAtEnds implements ByteSource, ByteSink {
  private sink!: ByteSink
  private head: Buffer = Buffer.alloc(0)
  private tail: Buffer = Buffer.alloc(0)

  constructor(
    private readonly source: ByteSource,
    private readonly usage: RelayedUsage,
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
    const missingBytes = END_BYTES - this.head.length
    if (missingBytes > 0) this.head = Buffer.concat([this.head, chunk.subarray(0, missingBytes)])
    this.tail = Buffer.concat([this.tail, chunk.subarray(-END_BYTES)]).subarray(-END_BYTES)
    this.sink.data(chunk)
  }

  end(): void {
    this.usage.reportedUsage = reportedUsage(usageAtEnd(this.tail) ?? usageAtStart(this.head))
    this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}
