import type { IncomingMessage } from 'node:http'

import type { Exchange } from './exchange.js'
import type { Fault } from './faults.js'
import type { RecordedRequest } from './recorded-request.js'
import type { ServedLedger } from './served-ledger.js'

export interface SimulatorOptions {
  /** 0, the default, takes a free port. */
  readonly port?: number
  readonly host?: string
  /** Keep bodies of any size, and all of them. Default: the first mebibyte of each, 32 MiB in all. */
  readonly recordBodies?: boolean
  /** Pause between the frames of a stream in milliseconds, default 0. */
  readonly paceMs?: number
  /** Where it notes what it has served. Default: a ledger of its own. */
  readonly served?: ServedLedger
}

/** Answers one request. An error thrown while the caller is still there becomes a 500 and a violation. */
export type SimulatorHandler = (exchange: Exchange) => Promise<void>

export interface SimulatorEvents {
  /** The head of a request has arrived. */
  request: [RecordedRequest]
  /** The body was read to its end. */
  received: [RecordedRequest]
  /** The caller's socket went away before the answer was complete. */
  abort: [RecordedRequest]
}

/** A running simulator. Tests and the sandbox hold this and nothing else. */
export interface Simulator {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string
  readonly port: number
  /** Newest last, at most 1,000. */
  readonly requests: readonly RecordedRequest[]
  readonly lastRequest: RecordedRequest | undefined
  /** The violations of all remembered requests, and of the WebSocket sessions when there can be any. */
  readonly violations: readonly string[]
  readonly served: ServedLedger
  /** Sockets open now, idle keep-alive ones included. */
  readonly openConnections: number
  /** Requests whose exchange is not over. */
  readonly activeRequests: number
  /** Resolves with the first request that arrives after this call, once its body was read (or its caller left). */
  nextRequest(): Promise<RecordedRequest>
  /** Resolves with the first request after this call whose caller leaves before the answer is complete. */
  nextAbort(): Promise<RecordedRequest>
  /** Resolves when no exchange is active any more. */
  idle(): Promise<void>
  /**
   * The next request suffers this fault, or the next of this method where others may come in between; several are used
   * up in order, one per request.
   */
  queueFault(fault: Fault, method?: string): void
  /** Forgets recorded requests and queued faults. */
  reset(): void
  on<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  once<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  off<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  /** Stops listening and destroys every open socket. */
  close(): Promise<void>
}

/** The part of a simulator that holds its WebSocket sessions. */
export interface UpgradeHandler {
  readonly violations: readonly string[]
  upgrade(message: IncomingMessage, head: Buffer): void
  reset(): void
  breakOff(): void
}
