import { ERROR_KINDS } from '../error-kinds.js'
import type { GatewayError } from '../gateway-error.js'
import { presentableMessage } from '../message-text.js'
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
