import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'

/** nginx's word for a caller who left before the answer was complete; there is no status on the wire then. */
const CALLER_LEFT = 499

/** How a call ended; its `log` holds the rest. Times in milliseconds. */
export interface RequestOutcome {
  /** On the wire; 499 when the caller left. */
  readonly status: number
  /** The caller closed the connection before the answer was complete. */
  readonly left: boolean
  readonly totalMs: number
  /** What the gateway itself took: neither receiving the body nor with upstreams. */
  readonly gatewayMs: number
}

/** Called once for every request, when its response is over. Must not throw; what it throws is swallowed. */
type FinishedListener = (call: RequestContext, outcome: RequestOutcome) => void

/** Called once for every request, before it is checked. Must not throw; what it throws is swallowed. */
type StartedListener = (call: RequestContext, request: IncomingMessage) => void

/** Who wants to know that a call begins or is over. The server shares the one list, as it answers before Nest does. */
export class RequestHooks {
  private readonly finishedListeners: FinishedListener[] = []
  private readonly startedListeners: StartedListener[] = []

  onFinished(listener: FinishedListener): void {
    this.finishedListeners.push(listener)
  }

  onStarted(listener: StartedListener): void {
    this.startedListeners.push(listener)
  }

  /** Tells every watcher; none of them keeps the others from hearing it. */
  begun(call: RequestContext, request: IncomingMessage): void {
    for (const listener of this.startedListeners) {
      try {
        listener(call, request)
      } catch {
        continue
      }
    }
  }

  /** The same for the end: for each call that has begun, once. */
  over(call: RequestContext, outcome: RequestOutcome): void {
    for (const listener of this.finishedListeners) {
      try {
        listener(call, outcome)
      } catch {
        continue
      }
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

/** An answer the gateway itself cut, to show that its upstream failed, closes like one whose caller left. */
function callerLeft({ disconnect, log: { failure } }: RequestContext): boolean {
  return disconnect.aborted && (!(failure instanceof GatewayError) || failure.kind === 'caller_left')
}
