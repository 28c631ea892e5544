import { randomBytes } from 'node:crypto'
import { GatewayError, presentableMessage, scrubMessage } from '../core/errors.js'
import type { UsageOutcome } from '../core/usage-record.js'

/** RFC 6455 section 5.5: a control frame carries 125 bytes, two of which are the code. */
const MAXIMUM_REASON_BYTES = 123

const UTF8_CONTINUATION = 0x80
const UTF8_KIND = 0xc0

/** An upstream's text without its hosts and account ids, and without the channel's secret. */
export function scrubUpstreamText(text: string, secret: string): string {
  return scrubMessage(secret === '' ? text : text.replaceAll(secret, '[key]'))
}

/** An upstream's close reason as the client may see it: scrubbed, and cut where a character ends. */
export function closeReason(reason: Buffer, secret: string): string {
  const bytes = Buffer.from(presentableMessage(scrubUpstreamText(reason.toString(), secret)))
  if (bytes.length <= MAXIMUM_REASON_BYTES) return bytes.toString()
  let end = MAXIMUM_REASON_BYTES
  while (((bytes[end] ?? 0) & UTF8_KIND) === UTF8_CONTINUATION) end--
  return bytes.toString('utf8', 0, end)
}

/** The `error` of an `error` event; absent members are null on the wire, as upstream. */
export interface RealtimeError {
  readonly type: 'invalid_request_error' | 'rate_limit_error' | 'server_error'
  readonly code: string
  readonly message: string
  readonly param?: string | null | undefined
  /** Id of the client event that caused it. */
  readonly eventId?: string | null | undefined
}

/** Random per process and counted within it. */
const PREFIX = `event_gw${randomBytes(8).toString('hex')}`
let count = 0

/** The frame of an `error` event, which reads the same in both dialects. */
export function errorEvent({ type, code, message, param = null, eventId = null }: RealtimeError): Buffer {
  const error = { type, code, message, param, event_id: eventId }
  return Buffer.from(JSON.stringify({ type: 'error', event_id: `${PREFIX}${(++count).toString(16)}`, error }))
}

export interface Close {
  readonly code: number
  readonly reason: string
}

/** Why a session ends, and the close frame for each side. A side without one is terminated: it cannot receive it. */
export interface SessionEnding {
  /** Short and stable, for the log. */
  readonly cause: string
  /** Outcome recorded for a response that is cut off. */
  readonly outcome: Exclude<UsageOutcome, 'ok'>
  readonly client?: Close
  readonly upstream?: Close
  /** Sent to the client before its close frame. */
  readonly event?: RealtimeError
  /** For the log: set when the client did not cause the end. */
  readonly failure?: GatewayError
}

const NORMAL: Close = { code: 1000, reason: '' }
const LOST: Close = { code: 1011, reason: 'upstream connection lost' }
const SLOW: Close = { code: 1013, reason: 'slow reader' }

const goingAway = (reason: string): Close => ({ code: 1001, reason })
const policy = (reason: string): Close => ({ code: 1008, reason })

const upstreamFailure = (message: string): GatewayError => new GatewayError('upstream_failed', message)

export const clientClosed: SessionEnding = {
  cause: 'client_closed',
  outcome: 'caller_left',
  client: NORMAL,
  upstream: NORMAL,
}
/** The client's connection ended without a close frame, or with one that must not be echoed. */
export const clientLost: SessionEnding = { cause: 'client_lost', outcome: 'caller_left', upstream: NORMAL }
export const clientSilent: SessionEnding = { cause: 'client_silent', outcome: 'caller_left', upstream: NORMAL }
/** The client broke the protocol: the library has already sent the matching close frame. */
export const clientBroken: SessionEnding = {
  cause: 'client_broke_protocol',
  outcome: 'caller_left',
  client: NORMAL,
  upstream: NORMAL,
}
export const clientSlow: SessionEnding = {
  cause: 'client_slow',
  outcome: 'caller_left',
  client: SLOW,
  upstream: NORMAL,
}
export const tooManyEvents: SessionEnding = {
  cause: 'too_many_events',
  outcome: 'refused',
  client: policy('too many events per second'),
  upstream: NORMAL,
}
export const tooManyPings: SessionEnding = {
  cause: 'too_many_pings',
  outcome: 'refused',
  client: policy('too many pings per second'),
  upstream: NORMAL,
}
export const drained: SessionEnding = {
  cause: 'drained',
  outcome: 'refused',
  client: goingAway('the gateway is restarting'),
  upstream: goingAway(''),
}
export const keyRevoked: SessionEnding = {
  cause: 'key_over',
  outcome: 'refused',
  client: policy('the API key is not valid any more'),
  upstream: NORMAL,
  event: { type: 'invalid_request_error', code: 'invalid_api_key', message: 'The API key is not valid any more.' },
}
export const upstreamSlow: SessionEnding = {
  cause: 'upstream_slow',
  outcome: 'upstream_failed',
  client: goingAway('the upstream does not keep up'),
  upstream: SLOW,
  failure: upstreamFailure('The upstream did not take what waited for it.'),
}

const upstreamGone = (cause: string, message: string): SessionEnding => ({
  cause,
  outcome: 'upstream_failed',
  client: LOST,
  event: { type: 'server_error', code: 'upstream_failed', message },
  failure: upstreamFailure(message),
})
export const upstreamLost = upstreamGone('upstream_lost', 'The connection to the upstream was lost.')
export const upstreamSilent = upstreamGone('upstream_silent', 'The upstream does not answer any more.')

export const gatewayFailed = (error: unknown): SessionEnding => ({
  cause: 'gateway_failed',
  outcome: 'refused',
  client: { code: 1011, reason: 'internal error' },
  upstream: NORMAL,
  event: { type: 'server_error', code: 'internal_error', message: 'The gateway failed.' },
  failure: new GatewayError('internal', 'The session failed.', { cause: error }),
})

const MINUTE_MS = 60_000
const minutes = (milliseconds: number): string => `${Math.round((milliseconds / MINUTE_MS) * 10) / 10} minutes`

/** In the words that upstreams use for a session past its maximum age. */
export function expired(ageMs: number): SessionEnding {
  const message = `Your session hit the maximum duration of ${minutes(ageMs)}.`
  return {
    cause: 'expired',
    outcome: 'refused',
    client: goingAway(message),
    upstream: NORMAL,
    event: { type: 'invalid_request_error', code: 'session_expired', message },
  }
}

export function idle(idleMs: number): SessionEnding {
  const message = `Your session was idle for ${minutes(idleMs)}.`
  return {
    cause: 'idle',
    outcome: 'refused',
    client: goingAway('idle timeout'),
    upstream: NORMAL,
    event: { type: 'invalid_request_error', code: 'session_idle', message },
  }
}

const NO_CODE = 1005
const LAST_HARMLESS_CODE = 1001

/** Codes that may be sent in a close frame; the others describe a lost connection, or are undefined. */
const maySend = (code: number): boolean =>
  (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999)

/** The ending for an upstream's close; `secret` is the channel's, and is removed from the reason. */
export function upstreamClosed(code: number, reason: Buffer, secret: string): SessionEnding {
  if (code === NO_CODE)
    return { cause: 'upstream_closed', outcome: 'upstream_failed', client: NORMAL, upstream: NORMAL }
  if (!maySend(code)) return upstreamLost
  const ending: SessionEnding = {
    cause: 'upstream_closed',
    outcome: 'upstream_failed',
    client: { code, reason: closeReason(reason, secret) },
    upstream: NORMAL,
  }
  if (code <= LAST_HARMLESS_CODE) return ending
  return { ...ending, failure: upstreamFailure(`The upstream closed the session with code ${code}.`) }
}
