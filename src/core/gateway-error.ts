import type { ErrorKind } from './errors.js'

/**
 * How far a failed upstream attempt went: `unsent` = not a byte was written, `sent` = written but unanswered (the
 * upstream may have done the work), `answered` = the upstream refused. `channelFault` = the channel, not the call.
 */
export interface FailedAttempt {
  readonly phase: 'unsent' | 'sent' | 'answered'
  readonly channelFault?: boolean
}

export interface GatewayErrorDetails {
  /** The precise word of the specification, or a stable snake-case word of ours; absent = the kind's own code. */
  readonly code?: string
  /** The field at fault, as the caller wrote its path. */
  readonly param?: string
  /** For the log only, after scrubbing; never rendered. */
  readonly cause?: unknown
  /** Seconds, 1 to 60; rendered as `Retry-After`. */
  readonly retryAfterSeconds?: number
  /** False where a retry cannot help or may be billed twice; absent = the kind's own rule. */
  readonly retryable?: boolean
  /** Rendered as `Allow`; only with kind `method_not_allowed`. */
  readonly allow?: readonly string[]
  /** Rendered as they are; only with kind `upgrade_required`, where they say what to upgrade to. */
  readonly headers?: Readonly<Record<string, string>>
  /** Set on upstream failures: how far the attempt went, which decides whether another channel may be tried. */
  readonly attempt?: FailedAttempt
  /** An upstream's own error answer already in the caller's dialect, relayed instead of a rendered one. */
  readonly relayed?: { readonly status: number; readonly body: string }
  /** An upstream's own error frame, shown after the first byte instead of a rendered one. */
  readonly frame?: string
}

/** The one error of the house. What a status, type and body it becomes is decided by `error-kinds` and the envelopes. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly details: GatewayErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
  }
}
