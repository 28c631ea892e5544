import { GatewayError } from '../core/gateway-error.js'
import type { AnswerListener } from '../core/upstream-answer.js'
import type { ChannelAttempt, ChannelFailure } from './channel-attempt.js'

/** A refused key or an empty account does not mend itself in seconds; other faults may. */
const REFUSED_OPEN_MS = 60_000

/** Tells the channel's health what became of an attempt that failed. */
export function noteFailure(attempt: ChannelAttempt, error: unknown): void {
  const failure = failureOfChannel(error)
  if (failure === undefined) attempt.ended()
  else attempt.failed(failure)
}

/** What a failure says about the channel; undefined when it says nothing. */
function failureOfChannel(error: unknown): ChannelFailure | undefined {
  if (!(error instanceof GatewayError) || error.details.attempt?.channelFault !== true) return undefined
  const { retryAfterSeconds, attempt, retryable } = error.details
  if (retryAfterSeconds !== undefined) return { openMs: retryAfterSeconds * 1000 }
  return attempt.phase === 'answered' && retryable === false ? { openMs: REFUSED_OPEN_MS } : {}
}

/** Follows an answer that has begun to its end: what breaks there is the channel's failure like any other. */
export class AnswerOutcome implements AnswerListener {
  constructor(private readonly attempt: ChannelAttempt) {}

  over(error: GatewayError | undefined): void {
    if (error === undefined) this.attempt.succeeded()
    else noteFailure(this.attempt, error)
  }
}
