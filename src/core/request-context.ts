import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ModelClass } from '../config/channel-schema.js'
import type { Caller } from './caller.js'
import { type ErrorKind, GatewayError } from './errors.js'
import type { BytesInFlight } from './memory-budget.js'
import type { Allowance } from './quota.js'
import type { CallTrace } from './trace.js'

/**
 * Tells whoever works for a caller that the caller has left. One per request and far cheaper than an AbortSignal,
 * which costs an EventTarget for each relayed call.
 */
export class Departure {
  private listeners: (() => void)[] = []
  private happened = false

  get left(): boolean {
    return this.happened
  }

  /** Calls back once when the caller leaves, at once when that has happened already. Returns the way to unsubscribe. */
  onLeave(listener: () => void): () => void {
    if (this.happened) {
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

  announce(): void {
    if (this.happened) return
    this.happened = true
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
export interface CallLog {
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
  meter?: UsageMeter | undefined
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
export interface UsageMeter {
  /** What has been used so far as far as the wire tells; undefined when it has told nothing yet. */
  usageSoFar(): Usage | undefined
  /** What it has counted of an answer while that passed, and nothing that takes long to count now: kept beside the figures. */
  counted?(): Units | undefined
}

/** One request of a caller, from its first header to its last byte. Passed as an argument, never ambient. */
export class Call {
  /** Set by the key guard; routes without a guard never read it. */
  caller: Caller = { keyId: '-' }
  readonly departure = new Departure()
  /** Written with the head of the answer, whoever answers. */
  readonly answerHeaders: Record<string, string>
  readonly log: CallLog = { tried: [], receiveMs: 0, upstreamMs: 0, openWaitMs: 0, bytesIn: 0, bytesOut: 0 }

  /** Names and values in turn, sent with every request to an upstream beside the provider's own. */
  upstreamHeaders: readonly string[] = []

  /** Set by the limit gate, once it is known that the caller has limits. */
  allowance: Allowance | undefined = undefined

  /** Whether its answer says who gave it. */
  isExplained = false

  /** What counts the bytes held for the call; absent for work of the gateway's own. */
  memory: BytesInFlight | undefined = undefined
  heldBytes = 0
  /** Its response is over: nothing is held for it any more. */
  isOver = false

  /** Set before anything else happens to a call that is traced. */
  trace: CallTrace | undefined = undefined

  constructor(
    readonly requestId: string,
    readonly method: string,
    /** Without query. */
    readonly path: string,
    readonly startedAtMs: number,
  ) {
    this.answerHeaders = { 'x-request-id': requestId }
  }

  /** Throws when the caller has left; called before work that nobody would read. */
  assertPresent(): void {
    if (this.departure.left) throw callerLeft()
  }
}

export const callerLeft = (): GatewayError => new GatewayError('caller_left', 'The caller closed the connection.')

const CALL = Symbol('call')

interface CallHolder {
  [CALL]?: Call
}

export function attachCall(request: IncomingMessage, call: Call): void {
  ;(request as IncomingMessage & CallHolder)[CALL] = call
}

/** The call a request belongs to; every request gets one before anything else happens. */
export function callOf(request: IncomingMessage): Call {
  const call = findCall(request)
  if (call === undefined) throw new GatewayError('internal', 'The request has not been started.')
  return call
}

/** Notes bytes of the body that have arrived, on whatever call the request has. */
export function noteReceived(request: IncomingMessage, bytes: number): void {
  const call = findCall(request)
  if (call !== undefined) call.log.bytesIn += bytes
}

export const findCall = (request: IncomingMessage): Call | undefined => (request as IncomingMessage & CallHolder)[CALL]
