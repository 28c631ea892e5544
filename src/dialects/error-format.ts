import { ERROR_KINDS } from '../core/errors.js'
import type { GatewayError } from '../core/gateway-error.js'
import { audioEnvelope, chatEnvelope } from './audio.envelope.js'
import type { Envelope, RenderedError } from './envelope.js'
import { messagesEnvelope } from './messages.envelope.js'
import { imageEnvelope, taskEnvelope } from './task.envelope.js'

/** Path prefix → dialect. A path none of them claims is answered in the chat dialect. */
const ENVELOPES: readonly (readonly [string, Envelope])[] = [
  ['/v1/audio', audioEnvelope],
  ['/v1/messages', messagesEnvelope],
  ['/v1/document', taskEnvelope],
  ['/vidgen', taskEnvelope],
  ['/imggen', imageEnvelope],
]

/** The dialect in which a path's failures are rendered, known or unknown path alike. */
export function envelopeFor(path: string): Envelope {
  for (const [prefix, envelope] of ENVELOPES) {
    if (path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/')) return envelope
  }
  return chatEnvelope
}

/** The complete HTTP answer for a failure on a path: status, headers and JSON text. */
export function renderError(error: GatewayError, path: string, requestId: string): RenderedError {
  const envelope = envelopeFor(path)
  const relayed = error.details.relayed
  return {
    status: relayed?.status ?? envelope.status(error),
    headers: errorHeaders(error, envelope, requestId),
    body: relayed?.body ?? envelope.body(error, requestId),
  }
}

function errorHeaders(error: GatewayError, envelope: Envelope, requestId: string): Record<string, string> {
  const { details } = error
  const headers: Record<string, string> = {
    ...details.headers,
    'content-type': 'application/json',
    'x-request-id': requestId,
  }
  if (envelope.requestIdHeader !== undefined) headers[envelope.requestIdHeader] = requestId
  if (details.retryAfterSeconds !== undefined) headers['retry-after'] = String(details.retryAfterSeconds)
  if (details.allow !== undefined) headers['allow'] = details.allow.join(', ')
  const shouldRetry = details.retryable ?? ERROR_KINDS[error.kind].shouldRetry
  if (shouldRetry === false) headers['x-should-retry'] = 'false'
  return headers
}
