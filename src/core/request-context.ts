import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ModelClass } from '../config/channel-schema.js'
import type { Caller } from './caller.js'
import { type Dialect, type EndpointSpec, endpointFor, type PathMatch, UNKNOWN_PATH } from './endpoint.js'
import { type ErrorKind, GatewayError } from './errors.js'
import type { MemoryBudget } from './memory-budget.js'
import type { Quota } from './quota.js'
import type { RequestTrace } from './trace.js'

/**
 * Tells whoever works for a caller that the caller has left. One per request and far cheaper than an AbortSignal,
 * which costs an EventTarget for each relayed call.
 */
export class ClientDisconnect {
  private listeners: (() => void)[] = []
  private isAborted = false

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

/** A caller's own `x-request-id` when it is 1–128 printable characters, otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && ACCEPTABLE.test(given) ? given : newRequestId()
}

/** What the one log line of a request will say; filled in by whoever learns it. Times in milliseconds. */
export interface RequestLog {
  model?: string
  modelClass?: ModelClass
  channelId?: string
  /** Every attempt, in order; the last one may still be under way. */
  readonly tried: Attempt[]
  /** Spent reading the caller's body. */
  receiveMs: number
  /** Spent with upstreams, from dispatch to the end of their answers, over all attempts. */
  upstreamMs: number
  /** Of exchanges with upstreams that are not over: from dispatch to the first byte. */
  openWaitMs: number
  /** From the last dispatch to the first byte of its answer. */
  firstByteMs?: number
  /** Of the caller's body or, on a socket, of its messages. */
  bytesIn: number
  bytesOut: number
  upstreamRequestId?: string
  upstreamStatus?: number
  /** As the upstream reported it, or as it stands when the call is over (`settleUsage`). */
  usage?: Usage | undefined
  /** Its units as JSON, once somebody has needed that. */
  unitsText?: string
  /** Asked when the call is over and nobody has reported. */
  usageEstimator?: UsageEstimator | undefined
  /** What the gateway counted itself, as far as it did, beside what the upstream reported; for the usage record alone. */
  estimate?: Units | undefined
  failure?: unknown
  /** Of callers who got an error alone: the others are known by their keys. */
  callerAddress?: string | undefined
}

/** One attempt of a call on one channel. Times are on the performance clock. */
export interface Attempt {
  readonly channelId: string
  readonly startedAtMs: number
  /** When its answer began, or when it failed; absent while neither has happened. */
  endedAtMs?: number
  /** Why it failed; absent when it did not. */
  failure?: ErrorKind
  /** The upstream knows it as its parent; absent when calls are not traced. */
  spanId?: string
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
  /** What has been used so far as far as the wire tells; undefined when it has told nothing yet. */
  estimate(): Usage | undefined
  /** What it has counted of an answer while that passed, and nothing that takes long to count now: kept beside the figures. */
  countedUnits?(): Units | undefined
}

/** One request of a caller, from its first header to its last byte. Passed as an argument, never ambient. */
export class RequestContext {
  /** Set by the key guard; routes without a guard never read it. */
  caller: Caller = { keyId: '-' }
  readonly disconnect = new ClientDisconnect()
  /** undefined for unknown paths and methods, and for what is no request of a caller. */
  readonly endpoint: EndpointSpec | undefined
  /** In which its failures are rendered, whatever its path. */
  readonly dialect: Dialect
  /** The path as the log may show it. */
  readonly loggedPath: string
  /** Written with the head of the answer, whoever answers. */
  readonly responseHeaders: Record<string, string>
  readonly log: RequestLog = { tried: [], receiveMs: 0, upstreamMs: 0, openWaitMs: 0, bytesIn: 0, bytesOut: 0 }

  /** Names and values in turn, sent with every request to an upstream beside the provider's own. */
  upstreamHeaders: readonly string[] = []

  /** Set by the limit gate, once it is known that the caller has limits. */
  quota: Quota | undefined = undefined

  /** Whether its answer says who gave it. */
  isExplained = false

  /** What counts the bytes held for the call; absent for work of the gateway's own. */
  memoryBudget: MemoryBudget | undefined = undefined
  heldBytes = 0
  /** Its response is over: nothing is held for it any more. */
  isOver = false

  /** Set before anything else happens to a call that is traced. */
  trace: RequestTrace | undefined = undefined

  constructor(
    readonly requestId: string,
    readonly method: string,
    /** Without query. */
    readonly path: string,
    readonly startedAtMs: number,
    match: PathMatch = UNKNOWN_PATH,
  ) {
    this.endpoint = endpointFor(match, method)
    this.dialect = match.dialect
    this.loggedPath = match.loggedPath ?? path
    this.responseHeaders = { 'x-request-id': requestId }
  }

  /** Throws when the caller has left; called before work that nobody would read. */
  assertPresent(): void {
    if (this.disconnect.aborted) throw clientDisconnected()
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
