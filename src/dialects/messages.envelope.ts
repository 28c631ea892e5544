import { ERROR_KINDS } from '../core/errors.js'
import type { GatewayError } from '../core/gateway-error.js'
import { presentableMessage } from '../core/message-text.js'
import type { Envelope } from './envelope.js'

/** `{type: "error", error: {type, message}, request_id}` of the messages family. */
function messagesBody(error: GatewayError, requestId: string): string {
  return JSON.stringify({
    type: 'error',
    error: { type: ERROR_KINDS[error.kind].messages.type, message: presentableMessage(error.message) },
    request_id: requestId,
  })
}

export const messagesEnvelope: Envelope = {
  status: (error) => ERROR_KINDS[error.kind].messages.status,
  body: messagesBody,
  frame: (error, requestId) => `event: error\ndata: ${messagesBody(error, requestId)}\n\n`,
  requestIdHeader: 'request-id',
}
