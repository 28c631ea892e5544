import { types } from 'node:util'
import { GatewayError } from '../core/gateway-error.js'
import { refusalIn } from '../upstream/guarded-client-refusal.js'
import { TooManyRedirects } from '../upstream/ssrf-guard.js'
import { codeOf } from '../upstream/upstream-failure.js'

const BROKE_OFF = 'The connection to the server of the document broke off.'

const WORDS: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/, 'The host of the document is not known.'],
  [/^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/, 'The server of the document cannot be reached.'],
  [/CERT|TLS|SSL|SIGNATURE|ISSUER|^EPROTO$/, 'The server of the document cannot prove who it is, or speaks no TLS.'],
  [/^(?:HTTPParserError|UND_ERR_HEADERS_OVERFLOW)$/, 'The server of the document does not speak HTTP.'],
]

/**
 * A failed fetch in words for whoever asked for the document: they know its URL, and learn nothing about the gateway's
 * network. What is no failure of the transport comes out as it is.
 */
export function fetchFailure(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error
  if (refusalIn(error) instanceof TooManyRedirects) return failed('The URL of the document redirects too often.', error)
  if (error.kind === 'upstream_timeout') {
    return new GatewayError('upstream_timeout', 'The server of the document did not send it in time.', { cause: error })
  }
  // Only failures of the transport know how far an attempt went.
  if (error.kind !== 'upstream_failed' || error.details.attempt === undefined) return error
  const { cause } = error.details
  // The parser's own failures have no code.
  const code = types.isNativeError(cause) ? codeOf(cause) || cause.name : ''
  return failed(WORDS.find(([codes]) => codes.test(code))?.[1] ?? BROKE_OFF, error)
}

const failed = (words: string, { details }: GatewayError): GatewayError =>
  new GatewayError('upstream_failed', words, { cause: details.cause })
