import { GatewayError } from '../core/gateway-error.js'

/** Failures that can only happen before a byte of the request was written. */
const UNSENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UND_ERR_CONNECT_TIMEOUT',
])

const TIMEOUT_MESSAGES: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'The upstream could not be reached in time.',
  UND_ERR_HEADERS_TIMEOUT: 'The upstream did not answer in time.',
  UND_ERR_BODY_TIMEOUT: 'The upstream stopped sending in the middle of its answer.',
}

/**
 * What a transport failure means: timeout or failure, and whether the upstream may have seen the request.
 * Addresses and texts of the transport stay in `cause`, for the log.
 */
export function classifyFailure(error: Error, requestStarted: boolean): GatewayError {
  if (error instanceof GatewayError) return error
  const code = codeOf(error)
  const unsent = UNSENT_CODES.has(code) || !requestStarted
  const timeout = TIMEOUT_MESSAGES[code]
  const details = {
    cause: error,
    attempt: { phase: unsent ? 'unsent' : 'sent', channelFault: true } as const,
    // Whatever was sent may have been done, and billed, although no answer came.
    retryable: unsent,
  }
  return timeout === undefined
    ? new GatewayError('upstream_failed', 'The connection to the upstream failed.', details)
    : new GatewayError('upstream_timeout', timeout, details)
}

/** The transport's own word for a failure, wherever in it that stands; '' when there is none. */
export function codeOf(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code
  // Dual-stack dialling reports all its attempts in one error.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return codeOf(error.errors[0])
  return error.cause instanceof Error ? codeOf(error.cause) : ''
}
