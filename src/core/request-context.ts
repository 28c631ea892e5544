import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ModelClass } from '../config/model-classes.js'
import type { Caller, SentKey } from './caller.js'
import { type Dialect, type EndpointSpec, endpointFor, type PathMatch, UNKNOWN_PATH } from './endpoint.js'
import { type ErrorKind, GatewayError } from './errors.js'
import type { MemoryLease, Quota } from './quota.js'

/**
 * Signal that the client has disconnected. One per request and far cheaper than an AbortSignal,
 * which costs an EventTarget for each relayed call.
 */
export class ClientDisconnect {
  private listeners: (() => void)[] = []
  private isAborted = false
  private holds = 0
  private releaseListener: (() => void) | undefined

  get aborted(): boolean {
    return this.isAborted
  }

  /** Calls back once when the caller leaves, at once when that has happened already. Returns the way to unsubscribe. */
  onAbort(listener: () => void): () => void {
    if (this.isAborted) {
      listener()
      return () => undefined
    }
    this.listeners.push(listener)
    return () => {
      // Nearly always the only one, and called at the end of every exchange.
      if (this.listeners.length === 1 && this.listeners[0] === listener) this.listeners.pop()
      else this.listeners = this.listeners.filter((other) => other !== listener)
    }
  }

  /**
   * Called by a listener of `onAbort` whose work goes on for a moment. The request keeps its place, and its usage is not
   * counted, until the listener calls the returned function. It must be called exactly once.
   */
  hold(): () => void {
    this.holds++
    return () => {
      if (--this.holds === 0) this.releaseListener?.()
    }
  }

  /** Calls back once nothing is held, at once where nothing is. One listener alone. */
  whenReleased(listener: () => void): void {
    if (this.holds === 0) listener()
    else this.releaseListener = listener
  }

  /** Called before work of which the caller would see nothing. */
  throwIfAborted(): void {
    if (this.isAborted) throw clientDisconnected()
  }

  abort(): void {
    if (this.isAborted) return
    this.isAborted = true
    const listeners = this.listeners
    this.listeners = []
    for (const listener of listeners) listener()
  }
}

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/

/** Random per process and counted within it: unique over all replicas, at a fraction of the cost of a random id each. */
const PREFIX = `req_${randomBytes(10).toString('hex')}`
let count = 0

export const newRequestId = (): string => `${PREFIX}${(++count).toString(16).padStart(12, '0')}`

/** A caller's own `x-request-id` when it is 1–128 printable characters without a key (`hasKey`), otherwise a new one. */
export function requestIdOf(request: IncomingMessage, hasKey?: (id: string) => boolean): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && ACCEPTABLE.test(given) && hasKey?.(given) !== true ? given : newRequestId()
}

/** What the exchanges of one attempt with its upstream tell, filled in by them alone. Times in milliseconds. */
export class ExchangeRecord {
  /** From dispatch to the end of the answers, over all exchanges that are over. */
  upstreamMs = 0
  /** Of exchanges that are not over: from dispatch to the first byte. */
  openWaitMs = 0
  /** From the last dispatch to the first byte of its answer. */
  firstByteMs: number | undefined = undefined
  upstreamStatus: number | undefined = undefined
  upstreamRequestId: string | undefined = undefined
}

/** What became of a request that was translated to the dialect of its upstream. */
export interface TranslationRecord {
  /** As `chat over messages`. */
  readonly dialects: string
  /** Paths of the caller's fields, comma-separated; absent = none. */
  readonly approximated: string | undefined
  readonly dropped: string | undefined
}

/**
 * One attempt of a request on one channel: its own record, which becomes a part of the request's. Times on the performance
 * clock.
 */
export class AttemptRecord extends ExchangeRecord {
  /** When its answer began, or when it failed; absent while neither has happened. */
  endedAtMs: number | undefined = undefined
  failure: ErrorKind | undefined = undefined
  /** The upstream knows it as its parent; absent when requests are not traced. */
  spanId: string | undefined = undefined
  /** What the upstream has worked already while it has not answered yet: a caller who leaves then has used it. */
  usage: UsageReader | undefined = undefined
  /** Of an answer that came, whatever became of its translation. */
  answerUsage: UsageReader | undefined = undefined
  /** Absent where the upstream speaks the caller's dialect. */
  translation: TranslationRecord | undefined = undefined

  constructor(
    readonly channelId: string,
    readonly startedAtMs: number,
  ) {
    super()
  }
}

/** What happened to a request: its log line, its metrics, its trace and its usage entry are made of it. Times in milliseconds. */
export class RequestLog {
  model: string | undefined = undefined
  modelClass: ModelClass | undefined = undefined
  /** Whether the answer may hold thoughts that are not shown, whose tokens cannot be counted; undefined = not known. */
  reasons: boolean | undefined = undefined
  channelId: string | undefined = undefined
  /** Every attempt, in order; the last one may still be under way. */
  readonly attempts: AttemptRecord[] = []
  /** The attempt whose error the caller gets where that is not the last one's. */
  answeredBy: AttemptRecord | undefined = undefined
  /** Exchanges that belong to no channel, as when a document is fetched from the web. */
  fetched: ExchangeRecord | undefined = undefined
  /** Spent reading the caller's body. */
  receiveMs = 0
  /** Of the caller's body or, on a socket, of its messages. */
  bytesIn = 0
  bytesOut = 0
  /** As the upstream reported it, or as it was estimated: known when the request is over (`settleUsage`). */
  usage: Usage | undefined = undefined
  /** Its units as JSON, once these have been needed. */
  unitsText: string | undefined = undefined
  /** Of the answer that was given. */
  usageReader: UsageReader | undefined = undefined
  /** What the gateway counted itself, as far as it did, beside what the upstream reported; for the usage record alone. */
  estimate: Units | undefined = undefined
  failure: unknown = undefined
  /** Of callers who got an error alone: the others are known by their keys. */
  callerAddress: string | undefined = undefined

  /** Where an exchange that belongs to no channel tells what became of it. */
  beginFetch(): ExchangeRecord {
    return (this.fetched ??= new ExchangeRecord())
  }

  /** Of the attempt whose outcome the caller gets. */
  get translation(): TranslationRecord | undefined {
    return (this.answeredBy ?? this.attempts.at(-1))?.translation
  }

  /** Spent with upstreams, over all attempts. */
  get upstreamMs(): number {
    return this.sum('upstreamMs')
  }

  get openWaitMs(): number {
    return this.sum('openWaitMs')
  }

  get firstByteMs(): number | undefined {
    return this.latest('firstByteMs')
  }

  get upstreamStatus(): number | undefined {
    return this.latest('upstreamStatus')
  }

  get upstreamRequestId(): string | undefined {
    return this.latest('upstreamRequestId')
  }

  private sum(name: 'upstreamMs' | 'openWaitMs'): number {
    let sum = this.fetched === undefined ? 0 : this.fetched[name]
    for (const attempt of this.attempts) sum += attempt[name]
    return sum
  }

  /** What the last of the attempts that know it says. */
  private latest<Name extends 'firstByteMs' | 'upstreamStatus' | 'upstreamRequestId'>(
    name: Name,
  ): ExchangeRecord[Name] {
    for (let index = this.attempts.length - 1; index >= 0; index--) {
      const value = this.attempts[index]?.[name]
      if (value !== undefined) return value
    }
    return this.fetched?.[name]
  }
}

/** Counts by name, nested as the upstream nests them. */
export interface Units {
  readonly [name: string]: number | Units
}

/** Units as the upstream reported them, or as the gateway counted them (`estimated`). */
export interface Usage {
  readonly units: Units
  readonly estimated: boolean
}

/** Counts what passes, for answers that never come to the upstream's own figures; those always win. */
export interface UsageEstimator {
  /** What has been used so far as far as the wire tells; undefined when it has shown nothing yet. */
  estimate(): Usage | undefined
  /** What it has counted of an answer while that passed, and nothing that takes long to count now: kept beside the figures. */
  countedUnits?(): Units | undefined
}

/** What an answer has used: asked when its body is over, however it ended. */
export interface UsageReader extends Partial<UsageEstimator> {
  /** The upstream's own figures of the whole answer, once they have come; the estimate stands in for them. */
  readonly reportedUsage: Usage | undefined
  /** The last figures that came before the answer was complete: true only of an answer that is whole. */
  readonly earlyUsage?: Usage | undefined
}

/** The span of a request that is traced. */
export interface TraceSpan {
  /** Draws the span of an attempt that begins; returns the headers that name it to the upstream, names and values in turn. */
  beginAttempt(attempt: { spanId?: string | undefined }): readonly string[]
}

/** Key id of a request that no key guard has admitted. */
export const NO_KEY = '-'

/** One request of a caller, from its first header to its last byte. Passed as an argument, never ambient. */
export class RequestContext {
  /** `NO_KEY` until the key guard has admitted the request; routes without a guard keep that. */
  caller: Caller = { keyId: NO_KEY }
  /** Until the key guard has looked at it. */
  sentKey: SentKey | undefined = undefined
  readonly disconnect = new ClientDisconnect()
  /** undefined for unknown paths and methods, and for what is no request of a caller. */
  readonly endpoint: EndpointSpec | undefined
  /** In which its failures are rendered, whatever its path. */
  readonly dialect: Dialect
  /** The path as it came, or the template of an endpoint with a secret in its path. */
  readonly loggedPath: string
  /** Nothing in `loggedPath` is a caller's own text; of any other the log shows what `maskedPath` leaves. */
  readonly isPlainPath: boolean
  /** Written with the head of every response. */
  readonly responseHeaders: Record<string, string>
  readonly log = new RequestLog()

  /** Set by `RateLimiter`, for callers with limits. */
  quota: Quota | undefined = undefined

  /** Whether its answer says who gave it. */
  isExplained = false

  /** The caller takes no translation that approximates or drops anything. */
  isStrict = false

  /** What it may hold in memory; absent for work of the gateway's own. */
  memory: MemoryLease | undefined = undefined

  /** Set before anything else happens to a call that is traced. */
  trace: TraceSpan | undefined = undefined

  constructor(
    readonly requestId: string,
    readonly method: string,
    /** Without query. */
    readonly path: string,
    readonly startedAtMs: number,
    match: PathMatch = UNKNOWN_PATH,
    /** The dialect that this request's client reads. */
    dialect = match.dialect,
  ) {
    this.endpoint = endpointFor(match, method)
    this.dialect = dialect
    this.loggedPath = match.loggedPath ?? path
    this.isPlainPath = match.loggedPath !== undefined || match.endpoints[0]?.path === path
    this.responseHeaders = { 'x-request-id': requestId }
  }

  /** The headers of its own that a response has which is written now, what is left of limits included. */
  ownHeaders(): Record<string, string> {
    const headers = { ...this.responseHeaders }
    this.quota?.addHeaders(headers)
    return headers
  }

  /** Throws when the caller has left; called before work without a reader. */
  assertPresent(): void {
    this.disconnect.throwIfAborted()
  }
}

export const clientDisconnected = (): GatewayError =>
  new GatewayError('caller_left', 'The caller closed the connection.')

const CALL = Symbol('call')

interface CallHolder {
  [CALL]?: RequestContext
}

export function attachContext(request: IncomingMessage, call: RequestContext): void {
  ;(request as IncomingMessage & CallHolder)[CALL] = call
}

/** The call a request belongs to; every request gets one before anything else happens. */
export function contextOf(request: IncomingMessage): RequestContext {
  const call = findContext(request)
  if (call === undefined) throw new GatewayError('internal', 'The request has not been started.')
  return call
}

/** Notes bytes of the body that have arrived, on whatever call the request has. */
export function countReceived(request: IncomingMessage, bytes: number): void {
  const call = findContext(request)
  if (call !== undefined) call.log.bytesIn += bytes
}

export const findContext = (request: IncomingMessage): RequestContext | undefined =>
  (request as IncomingMessage & CallHolder)[CALL]
