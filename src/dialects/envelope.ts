import type { GatewayError } from '../core/gateway-error.js'

/** An error as a dialect sends it over HTTP; `body` is complete JSON text. */
export interface RenderedError {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/** One dialect's renderer: the same error, in the shape its clients read. */
export interface Envelope {
  readonly status: (error: GatewayError) => number
  readonly body: (error: GatewayError, requestId: string) => string
  /** One event-stream frame for a failure after the first byte; there is never a terminator behind it. */
  readonly frame: (error: GatewayError, requestId: string) => string
  /** The name under which this dialect's clients read the request id, beside `x-request-id`. */
  readonly requestIdHeader?: string
}
