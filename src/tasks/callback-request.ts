import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import { refusalIn } from '../upstream/guarded-client-refusal.js'
import { GuardedClient } from '../upstream/safe-fetch.js'
import { nextAttemptAtMs, readRetryAfterMs } from './callback-schedule.js'
import type { CallbackDelivery, CallbackOutcome } from './callback.repository.js'
import { Clock } from './clock.js'
import { webhookHeaders } from './webhook-signature.js'

const USER_AGENT = 'Multi-Model-Gateway'

/** The receiver's way to say that nobody is there any more. */
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
    private readonly guarded: GuardedClient,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
  ) {}

  /** Sends the event once and says what that means for it. Never rejects; ends at once when the call's departure does. */
  async make(delivery: CallbackDelivery, call: Call): Promise<CallbackOutcome> {
    const failure = await this.send(delivery, call)
    const nowMs = this.clock.nowMs()
    if (failure === undefined) return { outcome: 'delivered', atMs: nowMs }
    const { error, retryAfterMs = 0, isFinal = false } = failure
    // Cut by this process, not by its receiver: that must not use up the schedule.
    if (call.departure.left) return { outcome: 'retry', nextAttemptAtMs: nowMs, error }
    const attempts = delivery.attempts + 1
    const { scheduleMs } = this.store.current.callbacks
    const nextAtMs = isFinal ? undefined : nextAttemptAtMs(scheduleMs, { attempts, nowMs, retryAfterMs })
    return nextAtMs === undefined
      ? { outcome: 'exhausted', atMs: nowMs, error }
      : { outcome: 'retry', nextAttemptAtMs: nextAtMs, error }
  }

  private async send({ webhookId, url, body }: CallbackDelivery, call: Call): Promise<Failure | undefined> {
    const { callbacks, timeouts } = this.store.current
    const { timeoutMs, secret } = callbacks
    const signed = webhookHeaders({ webhookId, atMs: this.clock.nowMs(), body }, secret)
    try {
      const { status, headers } = await this.guarded.post(url, {
        call,
        body: Buffer.from(body),
        headers: ['content-type', 'application/json', 'user-agent', USER_AGENT, ...signed],
        deadlineAtMs: performance.now() + timeoutMs,
        timeouts: {
          connectMs: Math.min(timeouts.connectMs, timeoutMs),
          firstByteMs: timeoutMs,
          idleMs: timeoutMs,
          totalMs: timeoutMs,
        },
      })
      return this.judge(status, headers['retry-after'])
    } catch (error) {
      return { error: describeFailure(error) }
    }
  }

  private judge(status: number, retryAfter: string | string[] | undefined): Failure | undefined {
    if (status >= 200 && status < 300) return undefined
    const retryAfterMs = readRetryAfterMs(retryAfter, this.clock.nowMs())
    if (status === GONE) return { error: 'The receiver wants no more callbacks (status 410).', isFinal: true }
    if (status < 400) {
      return { error: `The receiver answered with a redirect (status ${status}); it is not followed.`, retryAfterMs }
    }
    return { error: `The receiver answered with status ${status}.`, retryAfterMs }
  }
}

/** In our words: the transport's own would name addresses. */
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
