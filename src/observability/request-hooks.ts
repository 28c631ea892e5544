import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../core/errors.js'
import type { Call } from '../core/request-context.js'

/** nginx's word for a caller who left before the answer was complete; there is no status on the wire then. */
const CALLER_LEFT = 499

/** How a call ended; its `log` holds the rest. Times in milliseconds. */
export interface CallOutcome {
  /** On the wire; 499 when the caller left. */
  readonly status: number
  /** The caller closed the connection before the answer was complete. */
  readonly left: boolean
  readonly totalMs: number
  /** What the gateway itself took: neither receiving the body nor with upstreams. */
  readonly gatewayMs: number
}

/** Is told once about every call, when its response is over. Must not throw; what it throws is swallowed. */
export type CallWatcher = (call: Call, outcome: CallOutcome) => void

/** Is told once about every call, before anybody judges it. Must not throw; what it throws is swallowed. */
export type BeginningWatcher = (call: Call, request: IncomingMessage) => void

/** Who wants to know that a call begins or is over. The server shares the one list, as it answers before Nest does. */
export class CallEndings {
  private readonly watchers: CallWatcher[] = []
  private readonly beginningWatchers: BeginningWatcher[] = []

  watch(watcher: CallWatcher): void {
    this.watchers.push(watcher)
  }

  watchBeginnings(watcher: BeginningWatcher): void {
    this.beginningWatchers.push(watcher)
  }

  /** Tells every watcher; none of them keeps the others from hearing it. */
  begun(call: Call, request: IncomingMessage): void {
    for (const watcher of this.beginningWatchers) {
      try {
        watcher(call, request)
      } catch {
        continue
      }
    }
  }

  /** The same for the end: for each call that has begun, once. */
  over(call: Call, outcome: CallOutcome): void {
    for (const watcher of this.watchers) {
      try {
        watcher(call, outcome)
      } catch {
        continue
      }
    }
  }
}

export function outcomeOf(call: Call, response: ServerResponse): CallOutcome {
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
function callerLeft({ departure, log: { failure } }: Call): boolean {
  return departure.left && (!(failure instanceof GatewayError) || failure.kind === 'caller_left')
}
