import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'

/** nginx's status for a client that disconnected before the response was complete; never sent. */
const CALLER_LEFT = 499

/** How a request ended; its `log` holds the rest. Times in milliseconds. */
export interface RequestOutcome {
  /** The status sent; 499 when the client disconnected. */
  readonly status: number
  /** The client disconnected before the response was complete. */
  readonly left: boolean
  readonly totalMs: number
  /** Time in the gateway itself: without receiving the body and waiting for upstreams. */
  readonly gatewayMs: number
}

/** Called once for every request, when its response is over. Must not throw; what it throws is swallowed. */
type FinishedListener = (call: RequestContext, outcome: RequestOutcome) => void

/**
 * Called when as many more requests have ended like one that was seen before, without a context of their own. Must not throw; what it
 * throws is swallowed.
 */
type RepeatedListener = (call: RequestContext, outcome: RequestOutcome, times: number) => void

/** Called once for every request, before it is checked. Must not throw; what it throws is swallowed. */
type StartedListener = (call: RequestContext, request: IncomingMessage) => void

/** Listeners for the start and the end of each request. Shared with the HTTP server, which answers before Nest does. */
export class RequestHooks {
  private readonly finishedListeners: FinishedListener[] = []
  private readonly startedListeners: StartedListener[] = []
  private readonly repeatedListeners: RepeatedListener[] = []
  private readonly countsWaiting: (() => void)[] = []
  private underWay = 0
  private idleListeners: (() => void)[] = []

  onFinished(listener: FinishedListener): void {
    this.finishedListeners.push(listener)
  }

  onStarted(listener: StartedListener): void {
    this.startedListeners.push(listener)
  }

  onRepeated(listener: RepeatedListener): void {
    this.repeatedListeners.push(listener)
  }

  /** `count` is called when all that has ended must be known: repeated requests are told of together. */
  countWhenAsked(count: () => void): void {
    this.countsWaiting.push(count)
  }

  repeated(call: RequestContext, outcome: RequestOutcome, times: number): void {
    callAll(this.repeatedListeners, call, outcome, times)
  }

  begun(call: RequestContext, request: IncomingMessage): void {
    this.underWay++
    callAll(this.startedListeners, call, request)
  }

  /** Called once for each request that has begun. */
  over(call: RequestContext, outcome: RequestOutcome): void {
    callAll(this.finishedListeners, call, outcome)
    if (--this.underWay === 0) for (const listener of this.idleListeners.splice(0)) listener()
  }

  /** Resolves once every request that has begun is over. That may be a moment after its connection is closed. */
  whenIdle(): Promise<void> {
    for (const count of this.countsWaiting) count()
    return new Promise((resolve) => {
      if (this.underWay === 0) resolve()
      else this.idleListeners.push(resolve)
    })
  }
}

/** Every listener is called, even if another throws. */
function callAll<Given extends unknown[]>(listeners: readonly ((...given: Given) => void)[], ...given: Given): void {
  for (const listener of listeners) {
    try {
      listener(...given)
    } catch {
      continue
    }
  }
}

export function outcomeOf(call: RequestContext, response: ServerResponse): RequestOutcome {
  const { receiveMs, upstreamMs } = call.log
  const left = callerLeft(call)
  const totalMs = performance.now() - call.startedAtMs
  return {
    status: left ? CALLER_LEFT : response.statusCode,
    left,
    totalMs,
    gatewayMs: Math.max(0, totalMs - upstreamMs - receiveMs),
  }
}

/** The gateway also closes the connection when the upstream fails in mid-response; the failure tells the cases apart. */
function callerLeft({ disconnect, log: { failure } }: RequestContext): boolean {
  return disconnect.aborted && (!(failure instanceof GatewayError) || failure.kind === 'caller_left')
}
