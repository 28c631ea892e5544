import type { IncomingMessage } from 'node:http'
import type { Caller } from '../auth/caller.js'
import type { ErrorKind } from '../errors/error-kinds.js'
import { GatewayError } from '../errors/gateway-error.js'
import { Departure } from './departure.js'

/** What the one log line of a request will say; filled in by whoever learns it. Times in milliseconds. */
export interface CallLog {
  model?: string
  channelId?: string
  /** Every attempt, in order; the last one may still be under way. */
  readonly tried: Attempt[]
  /** Spent reading the caller's body. */
  receiveMs: number
  /** Spent with upstreams, from dispatch to the end of their answers, over all attempts. */
  upstreamMs: number
  /** From the last dispatch to the first byte of its answer. */
  firstByteMs?: number
  bytesOut: number
  upstreamRequestId?: string
  upstreamStatus?: number
  usage?: Usage
  failure?: unknown
}

/** One attempt of a call on one channel. Times are on the performance clock. */
export interface Attempt {
  readonly channelId: string
  readonly startedAtMs: number
  /** When its answer began, or when it failed; absent while neither has happened. */
  endedAtMs?: number
  /** Why it failed; absent when it did not. */
  failure?: ErrorKind
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

/** One request of a caller, from its first header to its last byte. Passed as an argument, never ambient. */
export class Call {
  /** Set by the key guard; routes without a guard never read it. */
  caller: Caller = { keyId: '-' }
  readonly departure = new Departure()
  /** Written with the head of the answer, whoever answers. */
  readonly answerHeaders: Record<string, string>
  readonly log: CallLog = { tried: [], receiveMs: 0, upstreamMs: 0, bytesOut: 0 }

  /** Names and values in turn, sent with every request to an upstream beside the provider's own. */
  upstreamHeaders: readonly string[] = []

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

export const findCall = (request: IncomingMessage): Call | undefined => (request as IncomingMessage & CallHolder)[CALL]
