import type { ServerResponse } from 'node:http'
import { GatewayError } from '../errors/gateway-error.js'
import type { Call } from '../http/call.js'
import { describeError, type Logging } from './logger.js'

/** nginx's word for a caller who left before the answer was complete; there is no status on the wire then. */
const CALLER_LEFT = 499

const MAXIMUM_WORD_CHARACTERS = 128

/** Paths that probes ask every few seconds; their lines would drown the others. */
const QUIET_PATHS: ReadonlySet<string> = new Set(['/health/live', '/health/ready'])

/** The one line of a request: what it was, who asked, where it went, how long each part took. Never a body or a key. */
export function logCall(call: Call, response: ServerResponse, { logger, sink }: Logging): void {
  const { log } = call
  const left = callerLeft(call)
  const level = levelOf(call, response.statusCode, left)
  if (!logger.isLevelEnabled(level)) return
  const totalMs = performance.now() - call.startedAtMs
  sink.write(
    `${JSON.stringify({
      level: logger.levels.values[level],
      time: new Date().toISOString(),
      requestId: call.requestId,
      keyId: call.caller.keyId,
      method: call.method,
      route: clipped(call.path),
      model: clipped(log.model),
      channel: log.channelId,
      attempts: log.attempts,
      status: left ? CALLER_LEFT : response.statusCode,
      upstreamStatus: log.upstreamStatus,
      upstreamRequestId: clipped(log.upstreamRequestId),
      totalMs: rounded(totalMs),
      receiveMs: rounded(log.receiveMs),
      upstreamMs: rounded(log.upstreamMs),
      firstByteMs: log.firstByteMs === undefined ? undefined : rounded(log.firstByteMs),
      gatewayMs: rounded(Math.max(0, totalMs - log.upstreamMs - log.receiveMs)),
      bytesOut: log.bytesOut,
      usage: log.usage,
      failure: describeFailure(log.failure),
      msg: 'request',
    })}\n`,
  )
}

/** An answer the gateway itself cut, to show that its upstream failed, closes like one whose caller left. */
function callerLeft({ departure, log: { failure } }: Call): boolean {
  return departure.left && (!(failure instanceof GatewayError) || failure.kind === 'caller_left')
}

function levelOf(call: Call, status: number, left: boolean): 'debug' | 'info' | 'warn' | 'error' {
  const { failure } = call.log
  if (failure instanceof GatewayError && failure.kind === 'internal') return 'error'
  if (status >= 500 || (failure !== undefined && status < 400 && !left)) return 'warn'
  return QUIET_PATHS.has(call.path) ? 'debug' : 'info'
}

function describeFailure(failure: unknown): Record<string, unknown> | undefined {
  if (failure === undefined) return undefined
  if (!(failure instanceof GatewayError)) return describeError(failure)
  const { cause, code, param } = failure.details
  return {
    kind: failure.kind,
    code: clipped(code),
    param: clipped(param),
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  }
}

const rounded = (milliseconds: number): number => Math.round(milliseconds * 100) / 100

/** Words of callers and upstreams, as long as these made them. */
const clipped = (text: string | undefined): string | undefined => text?.slice(0, MAXIMUM_WORD_CHARACTERS)
