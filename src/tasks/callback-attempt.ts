import { createHmac } from 'node:crypto'
import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { SafeFetchClient, refusalIn } from '../upstream/safe-fetch.js'
import { isOwnMachine } from '../upstream/ssrf-guard.js'
import type { CallbackDelivery, CallbackOutcome } from './callback.repository.js'
import { Clock } from './background-work.js'

const FIELD = 'callback_url'
const MAXIMUM_CHARACTERS = 2048

/** Control characters: a URL parser drops or encodes them silently, and a database text cannot hold a NUL. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** Limit of a create's wait for name resolution. */
const RESOLVE_MS = 2000

/**
 * Whether callbacks may go to this machine itself, at any port but those of other protocols: in a sandbox that only this
 * machine can call. Its key is known to the world, so that anyone who reaches it could send to what listens here.
 */
@Injectable()
export class LocalReceivers {
  constructor(
    private readonly store: ConfigStore,
    @Inject(environmentConfig.KEY) private readonly environment: Pick<Environment, 'inSandbox'>,
  ) {}

  get areAllowed(): boolean {
    return this.environment.inSandbox && isOwnMachine(this.store.current.server.host)
  }
}

/**
 * Checks a `callback_url` when a task is created, so that a useless or hostile one is refused before the task costs anything.
 */
@Injectable()
export class CallbackAddress {
  constructor(
    private readonly guarded: SafeFetchClient,
    @Inject(LocalReceivers) private readonly local: Pick<LocalReceivers, 'areAllowed'>,
  ) {}

  /**
   * Rejects with `invalid_request` (param `callback_url`, code `url_not_allowed`) unless the URL is http or https, without
   * user, at most 2,048 characters long and none of them a control character, and leads to public addresses, to what the
   * operator exempts, or to this machine where that is allowed. A name that does not resolve now is let through: each
   * delivery judges the address anew.
   */
  async assertAllowed(url: string): Promise<void> {
    if (url.length > MAXIMUM_CHARACTERS) throw invalid(`it must not be longer than ${MAXIMUM_CHARACTERS} characters`)
    if (CONTROL_CHARACTER.test(url)) throw invalid('it must not hold control characters')
    await this.guarded.assertAllowed(url, FIELD, RESOLVE_MS, this.local.areAllowed)
  }
}

const invalid = (what: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid '${FIELD}': ${what}.`, { code: 'url_not_allowed', param: FIELD })

/** Host and port of a callback address, as the store compares them; empty for a text that is not a URL. */
export const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '')

/** Jitter, so that deliveries which failed together are not retried together. */
const JITTER = 0.2

/** Upper limit for a receiver's `Retry-After`. */
const MAXIMUM_RETRY_AFTER_MS = 86_400_000

/** The three forms of an HTTP date begin with a weekday; `Date.parse` alone would read almost anything. */
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)/i

interface FailedAttempt {
  /** Attempts made, including this one. */
  readonly attempts: number
  readonly nowMs: number
  /** The receiver's `Retry-After`, counted from now. */
  readonly retryAfterMs?: number
}

/**
 * When the next attempt is due (Unix milliseconds): the schedule's delay (one for each attempt) ± 20 %, or later when
 * the receiver requests it. undefined once the schedule is used up. `random` is uniform in [0, 1).
 */
export function nextAttemptAtMs(
  scheduleMs: readonly number[],
  { attempts, nowMs, retryAfterMs = 0 }: FailedAttempt,
  random: () => number = Math.random,
): number | undefined {
  const delayMs = scheduleMs[attempts]
  if (delayMs === undefined) return undefined
  const spreadMs = delayMs * (1 - JITTER + 2 * JITTER * random())
  return nowMs + Math.round(Math.max(spreadMs, retryAfterMs))
}

/** The latest times that can be planned now: by the schedule for each number of attempts made, and as a receiver asks for it. */
export const latestAttempts = (scheduleMs: readonly number[], nowMs: number) => ({
  attemptAtMs: scheduleMs.map((delayMs) => nowMs + Math.ceil(delayMs * (1 + JITTER))),
  askedAtMs: nowMs + MAXIMUM_RETRY_AFTER_MS,
})

/** `Retry-After`, in seconds or as a date, as milliseconds from now: 24 hours at most, 0 when it is missing or not readable. */
export function readRetryAfterMs(value: string | string[] | undefined, nowMs: number): number {
  if (typeof value !== 'string') return 0
  const text = value.trim()
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - nowMs : 0
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(waitMs, 0), MAXIMUM_RETRY_AFTER_MS)
}

const SECRET_PREFIX = 'whsec_'

export interface WebhookMessage {
  /** The same for every attempt. */
  readonly webhookId: string
  /** When this attempt is made, Unix milliseconds. */
  readonly atMs: number
  /** Exactly the bytes that are sent. */
  readonly body: string
}

/**
 * The headers of Standard Webhooks, names and values in turn: id, time in seconds, and with a secret (`whsec_<base64>`)
 * the signature: HMAC-SHA256 over id, time and body, joined by dots, in base64 behind the version `v1`.
 */
export function webhookHeaders({ webhookId, atMs, body }: WebhookMessage, secret: string | undefined): string[] {
  const timestamp = String(Math.floor(atMs / 1000))
  const headers = ['webhook-id', webhookId, 'webhook-timestamp', timestamp]
  if (secret === undefined) return headers
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${webhookId}.${timestamp}.${body}`).digest('base64')
  return [...headers, 'webhook-signature', `v1,${signature}`]
}

const USER_AGENT = 'Multi-Model-Gateway'

/** 410 Gone: the receiver wants no further events. */
const GONE = 410

const UNKNOWN_NAME: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN'])
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/

interface Failure {
  readonly error: string
  readonly retryAfterMs?: number
  /** No further attempt, whatever the schedule says. */
  readonly isFinal?: boolean
}

/** One attempt to deliver one event (design: callbacks). */
@Injectable()
export class CallbackAttempt {
  constructor(
    private readonly guarded: SafeFetchClient,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LocalReceivers) private readonly local: Pick<LocalReceivers, 'areAllowed'>,
  ) {}

  /** Sends the event once and returns the outcome. Never rejects; ends at once when the request is aborted. */
  async make(delivery: CallbackDelivery, call: RequestContext): Promise<CallbackOutcome> {
    const failure = await this.send(delivery, call)
    const nowMs = this.clock.nowMs()
    if (failure === undefined) return { outcome: 'delivered', atMs: nowMs }
    const { error, retryAfterMs = 0, isFinal = false } = failure
    // Aborted by this process, not by its receiver: the schedule is not used up.
    if (call.disconnect.aborted) return { outcome: 'retry', nextAttemptAtMs: nowMs, error }
    const attempts = delivery.attempts + 1
    const { scheduleMs } = this.store.current.callbacks
    const nextAtMs = isFinal ? undefined : nextAttemptAtMs(scheduleMs, { attempts, nowMs, retryAfterMs })
    return nextAtMs === undefined
      ? { outcome: 'exhausted', atMs: nowMs, error }
      : { outcome: 'retry', nextAttemptAtMs: nextAtMs, error }
  }

  private async send({ webhookId, url, body }: CallbackDelivery, call: RequestContext): Promise<Failure | undefined> {
    const { callbacks, timeouts } = this.store.current
    const { timeoutMs, secret } = callbacks
    const signed = webhookHeaders({ webhookId, atMs: this.clock.nowMs(), body }, secret)
    try {
      const { status, headers } = await this.guarded.post(url, {
        context: { disconnect: call.disconnect, record: call.log.beginFetch() },
        body: Buffer.from(body),
        headers: ['content-type', 'application/json', 'user-agent', USER_AGENT, ...signed],
        mayBeLoopback: this.local.areAllowed,
        deadlineAtMs: performance.now() + timeoutMs,
        timeouts: {
          connectMs: Math.min(timeouts.connectMs, timeoutMs),
          firstByteMs: timeoutMs,
          idleMs: timeoutMs,
          totalMs: timeoutMs,
        },
      })
      return this.classify(status, headers['retry-after'])
    } catch (error) {
      return { error: describeFailure(error) }
    }
  }

  private classify(status: number, retryAfter: string | string[] | undefined): Failure | undefined {
    if (status >= 200 && status < 300) return undefined
    const retryAfterMs = readRetryAfterMs(retryAfter, this.clock.nowMs())
    if (status === GONE) return { error: 'The receiver wants no more callbacks (status 410).', isFinal: true }
    if (status < 400) {
      return { error: `The receiver answered with a redirect (status ${status}); it is not followed.`, retryAfterMs }
    }
    return { error: `The receiver answered with status ${status}.`, retryAfterMs }
  }
}

/** The gateway's own words: the transport's message would name addresses. */
function describeFailure(error: unknown): string {
  if (refusalIn(error) !== undefined) return 'The URL does not lead to a public address.'
  if (!(error instanceof GatewayError)) return 'The callback could not be sent.'
  if (error.kind === 'caller_left') return 'The gateway shut down during the attempt.'
  if (error.kind === 'upstream_timeout') return 'The receiver did not answer in time.'
  const code = transportCode(error.details.cause)
  if (UNKNOWN_NAME.has(code)) return 'The name of the receiver is not known.'
  if (CERTIFICATE.test(code)) return 'The certificate of the receiver was not accepted.'
  return 'The connection to the receiver failed.'
}

const transportCode = (cause: unknown): string =>
  typeof cause === 'object' && cause !== null && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
