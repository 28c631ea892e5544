import { collect } from '../core/byte-stream.js'
import { type ErrorKind, type FailedAttempt, GatewayError, scrubMessage } from '../core/errors.js'
import type { UpstreamResponse } from './exchange.js'

/**
 * What about the account behind the key that was sent stood in the way: `key` = the key itself, `access` = what it may
 * ask for, `quota` = its balance, `busy` = its limits for the moment.
 */
export type AccountError = 'key' | 'access' | 'quota' | 'busy'

interface AccountErrorDetails {
  /** For the log only. */
  readonly cause?: unknown
  /** With `busy` alone; default 1. */
  readonly retryAfterSeconds?: number
  /** How far the attempt went; default `answered`. */
  readonly phase?: FailedAttempt['phase']
}

/**
 * The failure that such a fault is. The caller's own key is the caller's to know about, and says nothing about the
 * channel; the channel's own is the operator's: the caller never hears of it, and no retry of the caller's helps unless
 * the upstream is only busy.
 */
export function accountError(
  fault: AccountError,
  callersKey: boolean,
  { cause, phase = 'answered', retryAfterSeconds = 1 }: AccountErrorDetails = {},
): GatewayError {
  const [kind, message, more] = callersKey ? OF_CALLER[fault] : fault === 'busy' ? BUSY_CHANNEL : REFUSED_CHANNEL
  return new GatewayError(kind, message, {
    attempt: callersKey ? { phase } : { phase, channelError: true },
    ...more,
    ...(fault === 'busy' ? { retryAfterSeconds } : {}),
    ...(cause === undefined ? {} : { cause }),
  })
}

type Row = readonly [ErrorKind, message: string, more: { readonly code?: string; readonly retryable?: false }]

const OF_CALLER: Readonly<Record<AccountError, Row>> = {
  key: ['unauthorized', 'The upstream does not accept this API key.', {}],
  access: ['forbidden_model', 'This API key has no access to what was asked for at the upstream.', {}],
  quota: [
    'rate_limited',
    'The account behind this API key has no quota left at the upstream.',
    { code: 'insufficient_quota', retryable: false },
  ],
  busy: ['rate_limited', 'The upstream limits this API key.', {}],
}

const REFUSED_CHANNEL: Row = [
  'upstream_failed',
  'The upstream does not serve this gateway at the moment.',
  { retryable: false },
]

const BUSY_CHANNEL: Row = ['rate_limited', 'The upstream is busy. Please try again later.', {}]

/** What an upstream's error body says, read by that upstream's own reader; undefined = not its dialect. */
export interface UpstreamErrorBody {
  readonly message: string
  readonly code?: string
  readonly param?: string
  /** The account behind the channel has run dry: the channel's fault, whatever the status says. */
  readonly quota?: boolean
  /** The whole body, already in the dialect of the routes this upstream serves; relayed instead of rendering anew. */
  readonly relayable?: string
}

interface UpstreamErrorRules {
  /** Given the parsed body and its text as it came. */
  readonly read: (body: Record<string, unknown>, text: string) => UpstreamErrorBody | undefined
  /** True when the caller's own key was sent upstream, so that a refused key is the caller's. */
  readonly callersKey: boolean
  /** The credential that was sent: it may be quoted back, in whatever shape it has. */
  readonly secret: string
  /** Statuses a route's dialect does not know, and what it says instead. */
  readonly statusMap?: Readonly<Record<number, number>>
}

const MAXIMUM_ERROR_BODY_BYTES = 262_144

/** Statuses that speak about the account behind the key that was sent. */
const ACCOUNT_ERRORS: Readonly<Record<number, AccountError>> = { 401: 'key', 402: 'quota', 403: 'access', 429: 'busy' }

/** Of messages upstreams and of all others: their capacity, which a client may wait for. */
const OVERLOADED: ReadonlySet<number> = new Set([503, 529])

/** The caller's own faults: relayed with the upstream's words. */
const CALLER_ERRORS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  404: 'unknown_model',
  409: 'conflict',
  413: 'payload_too_large',
  422: 'unprocessable',
}

/** Reads an upstream's error answer and says whose fault it is; always a `GatewayError`, whatever the body holds. */
export async function parseUpstreamError(response: UpstreamResponse, rules: UpstreamErrorRules): Promise<GatewayError> {
  const bytes = await collect(response.body, MAXIMUM_ERROR_BODY_BYTES, unreadableError).catch(() => Buffer.alloc(0))
  const body = parseErrorBody(bytes, rules)
  const { status } = response
  const fault = body?.quota === true ? 'quota' : ACCOUNT_ERRORS[status]
  if (fault !== undefined) {
    return accountError(fault, rules.callersKey, { retryAfterSeconds: retryAfterSeconds(response.headers) })
  }
  if (OVERLOADED.has(status)) return upstreamOverloaded(response)
  const kind = CALLER_ERRORS[status]
  return kind === undefined ? upstreamFailed(response) : callerError(kind, status, body, rules)
}

function parseErrorBody(bytes: Buffer, rules: UpstreamErrorRules): UpstreamErrorBody | undefined {
  try {
    const text = bytes.toString().replaceAll(rules.secret, '[key]')
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return rules.read(value as Record<string, unknown>, text)
  } catch {
    return undefined
  }
}

function callerError(
  kind: ErrorKind,
  status: number,
  body: UpstreamErrorBody | undefined,
  { statusMap = {} }: UpstreamErrorRules,
): GatewayError {
  const relayed =
    body?.relayable === undefined ? undefined : { status: statusMap[status] ?? status, body: body.relayable }
  return new GatewayError(kind, scrubMessage(body?.message ?? 'The upstream refused the request.'), {
    attempt: { phase: 'answered' },
    ...(body?.code === undefined ? {} : { code: body.code }),
    ...(body?.param === undefined ? {} : { param: body.param }),
    ...(relayed === undefined ? {} : { relayed }),
  })
}

const upstreamFailed = (response: UpstreamResponse): GatewayError =>
  new GatewayError('upstream_failed', `The upstream failed with status ${response.status}.`, {
    attempt: { phase: 'answered', channelError: true },
  })

const upstreamOverloaded = ({ headers }: UpstreamResponse): GatewayError =>
  new GatewayError('upstream_overloaded', 'The upstream is overloaded. Please try again later.', {
    attempt: { phase: 'answered', channelError: true },
    retryAfterSeconds: retryAfterSeconds(headers),
  })

/** Clamped to 1–60 s, whatever form the upstream chose: milliseconds, seconds or a date. */
function retryAfterSeconds(headers: UpstreamResponse['headers']): number {
  const milliseconds = numberOf(headers['retry-after-ms'])
  const text = String(headers['retry-after'] ?? '')
  const seconds = numberOf(text)
  const fromDate = (Date.parse(text) - Date.now()) / 1000
  const wish = [milliseconds / 1000, seconds, fromDate].find((value) => Number.isFinite(value)) ?? 1
  return Math.min(60, Math.max(1, Math.ceil(wish)))
}

/** NaN for an absent or empty text, which `Number` would read as zero. */
const numberOf = (text: string | string[] | undefined): number =>
  typeof text === 'string' && text.trim() !== '' ? Number(text) : NaN

const unreadableError = (): GatewayError => new GatewayError('upstream_failed', 'The error answer is too large.')
