import { type ErrorKind, GatewayError, UPSTREAM_FAILURES } from '../core/errors.js'
import type { AttemptRecord, RequestContext, RequestLog } from '../core/request-context.js'
import { type Clock, processClock } from '../core/time.js'
import { describeError, type Logging } from './logger.js'
import type { RequestOutcome } from './request-hooks.js'

/**
 * Outcome of a request as a label: `ok`; `left` = client disconnected; `refused` = caller's fault, or a limit; `overloaded` =
 * refused by load shedding; `upstream_failed`; `gateway_failed`.
 */
export const OUTCOME_LABELS = ['ok', 'left', 'refused', 'overloaded', 'upstream_failed', 'gateway_failed'] as const
export type OutcomeLabel = (typeof OUTCOME_LABELS)[number]

const FIRST_ERROR = 400

/** All other kinds mean `refused`. */
const LABELS: Partial<Record<ErrorKind, OutcomeLabel>> = {
  ...Object.fromEntries([...UPSTREAM_FAILURES].map((kind) => [kind, 'upstream_failed'] as const)),
  overloaded: 'overloaded',
  internal: 'gateway_failed',
}

export function outcomeLabelOf({ log: { failure } }: RequestContext, { status, left }: RequestOutcome): OutcomeLabel {
  if (left) return 'left'
  if (failure === undefined) return status < FIRST_ERROR ? 'ok' : 'refused'
  return failure instanceof GatewayError ? (LABELS[failure.kind] ?? 'refused') : 'gateway_failed'
}

const MAXIMUM_WORD_CHARACTERS = 128

/** Paths polled by probes every few seconds; successful ones are logged at debug level. */
const QUIET_PATHS: ReadonlySet<string> = new Set(['/health/live', '/health/ready'])

/** Statuses that a caller can get as fast as it asks, whatever they cost. */
const CHEAP_REFUSALS: ReadonlySet<number> = new Set([401, 404, 429])

/** Before an upstream was asked all of them are: a fault of the caller's. */
const isCheapRefusal = (status: number, { log }: RequestContext): boolean =>
  CHEAP_REFUSALS.has(status) || (status >= 400 && status < 500 && log.attempts.length === 0)

/** Lines of refusals in one second; further ones are counted only. */
const LINES_PER_SECOND = 100
const SECOND_MS = 1_000

/** Bounds the lines of what a caller can cause as fast as it asks. */
export class LinesPerSecond {
  private secondStartedAtMs = Number.NEGATIVE_INFINITY
  private inSecond = 0

  constructor(private readonly nowMs: Clock = processClock) {}

  /** Whether there is room for one more; each time counts. */
  hasRoom(): boolean {
    const nowMs = this.nowMs()
    if (nowMs - this.secondStartedAtMs >= SECOND_MS) {
      this.secondStartedAtMs = nowMs
      this.inSecond = 0
    }
    this.inSecond++
    return this.inSecond <= LINES_PER_SECOND
  }
}

/** One line for each request; of cheap refusals a hundred in a second, and then one with the number of the others. */
export class AccessLog {
  private readonly refusals = new LinesPerSecond()
  private omitted = 0
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly logging: Logging,
    /** A path without what must not be logged. */
    private readonly shownPath: (path: string) => string = (path) => path,
    /** The same of a name in a caller's body that was refused. */
    private readonly shownName: (name: string) => string = (name) => name,
  ) {}

  write(call: RequestContext, outcome: RequestOutcome): void {
    const { logger, sink } = this.logging
    const level = levelOf(call, outcome.status, outcome.left)
    if (!logger.isLevelEnabled(level)) return
    if (isCheapRefusal(outcome.status, call) && !this.refusals.hasRoom()) {
      this.omit(1)
      return
    }
    const route = call.isPlainPath ? call.loggedPath : this.shownPath(call.loggedPath)
    const failure = describeFailure(call.log.failure, this.shownName)
    sink.write(lineOf(call, outcome, { route, failure }, String(logger.levels.values[level])))
  }

  /** Counts requests that have no line of their own. */
  omit(requests: number): void {
    this.omitted += requests
    this.timer ??= setTimeout(this.report, SECOND_MS).unref()
  }

  private readonly report = (): void => {
    this.timer = undefined
    this.logging.logger.info({ refused: this.omitted }, 'refused requests without lines of their own')
    this.omitted = 0
  }
}

/** Concatenated by hand: the logger's own way costs twice as much, for every relayed request. Never a body or a key. */
function lineOf(
  call: RequestContext,
  { status, totalMs, gatewayMs }: RequestOutcome,
  { route, failure }: { readonly route: string; readonly failure: Record<string, unknown> | undefined },
  level: string,
): string {
  const { log } = call
  return (
    `{"level":${level},"time":"${isoTime()}"` +
    word('requestId', call.requestId) +
    word('keyId', call.caller.keyId) +
    word('address', log.callerAddress) +
    word('method', call.method) +
    word('route', route) +
    word('model', log.model) +
    word('channel', log.channelId) +
    word('translation', log.translation?.dialects) +
    count('attempts', log.attempts.length) +
    record('tried', describeTried(log.attempts)) +
    count('status', status) +
    count('upstreamStatus', log.upstreamStatus) +
    word('upstreamRequestId', log.upstreamRequestId) +
    duration('totalMs', totalMs) +
    duration('receiveMs', log.receiveMs) +
    duration('upstreamMs', log.upstreamMs) +
    duration('firstByteMs', log.firstByteMs) +
    duration('gatewayMs', gatewayMs) +
    count('bytesOut', log.bytesOut) +
    usageText(log) +
    record('failure', failure) +
    ',"msg":"request"}\n'
  )
}

/** Channel and outcome of each attempt; a single attempt is described by the other fields. */
function describeTried(tried: readonly AttemptRecord[]): readonly object[] | undefined {
  if (tried.length < 2) return undefined
  return tried.map(({ channelId, startedAtMs, endedAtMs, failure }) => ({
    channel: channelId,
    ...(endedAtMs === undefined ? {} : { ms: rounded(endedAtMs - startedAtMs) }),
    ...(failure === undefined ? {} : { failure }),
  }))
}

function levelOf(call: RequestContext, status: number, left: boolean): 'debug' | 'info' | 'warn' | 'error' {
  const { failure } = call.log
  if (failure instanceof GatewayError && failure.kind === 'internal') return 'error'
  if (status >= 500 || (failure !== undefined && status < 400 && !left)) return 'warn'
  return QUIET_PATHS.has(call.path) ? 'debug' : 'info'
}

function describeFailure(failure: unknown, shownName: (name: string) => string): Record<string, unknown> | undefined {
  if (failure === undefined) return undefined
  if (!(failure instanceof GatewayError)) return describeError(failure)
  const { cause, code, param } = failure.details
  return {
    kind: failure.kind,
    code: clipped(code),
    param: clipped(param === undefined ? undefined : shownName(param)),
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  }
}

/** Text from callers and upstreams, of any length. */
const clipped = (text: string | undefined): string | undefined => text?.slice(0, MAXIMUM_WORD_CHARACTERS)

/** Texts that need no JSON escaping. */
const PLAIN = /^[\w./:@ -]*$/

function word(name: string, text: string | undefined): string {
  if (text === undefined) return ''
  const shown = text.length > MAXIMUM_WORD_CHARACTERS ? text.slice(0, MAXIMUM_WORD_CHARACTERS) : text
  return PLAIN.test(shown) ? `,"${name}":"${shown}"` : `,"${name}":${JSON.stringify(shown)}`
}

const count = (name: string, value: number | undefined): string => (value === undefined ? '' : `,"${name}":${value}`)

const rounded = (milliseconds: number): number => Math.round(milliseconds * 100) / 100

const duration = (name: string, milliseconds: number | undefined): string =>
  milliseconds === undefined ? '' : `,"${name}":${rounded(milliseconds)}`

const record = (name: string, value: object | undefined): string =>
  value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`

/** Serialized once for the log and the usage record. */
function usageText(log: RequestLog): string {
  const { usage } = log
  if (usage === undefined) return ''
  const unitsText = (log.unitsText ??= JSON.stringify(usage.units))
  return `,"usage":{"units":${unitsText},"estimated":${usage.estimated}}`
}

let timeMs = 0
let timeText = ''

/** Many requests end within one millisecond; its timestamp is formatted once. */
function isoTime(): string {
  const nowMs = Date.now()
  if (nowMs !== timeMs) {
    timeMs = nowMs
    timeText = new Date(nowMs).toISOString()
  }
  return timeText
}
