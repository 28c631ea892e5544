import { ERROR_KINDS } from '../core/errors.js'
import type { GatewayError } from '../core/gateway-error.js'
import { presentableMessage } from '../core/message-text.js'
import type { Envelope } from './envelope.js'

/** `{error: {message, type, param, code}}`, all four keys always present (specification: Errors; upstream's own form). */
function audioBody(error: GatewayError): string {
  const { type, code } = ERROR_KINDS[error.kind].audio
  return JSON.stringify({
    error: {
      message: presentableMessage(error.message),
      type,
      param: error.details.param ?? null,
      code: error.details.code ?? code,
    },
  })
}

const frame = (error: GatewayError): string => `data: ${audioBody(error)}\n\n`

/** Chat, realtime's HTTP phase, models and every path no other dialect claims. */
export const chatEnvelope: Envelope = {
  status: (error) => ERROR_KINDS[error.kind].audio.chatStatus,
  body: audioBody,
  frame,
}

/** `/v1/audio/*`: the same body, but upstream failures are 500 and unknown models 400, as the specification's table says. */
export const audioEnvelope: Envelope = {
  status: (error) => ERROR_KINDS[error.kind].audio.status,
  body: audioBody,
  // Event streams of the audio endpoints are framed with CRLF.
  frame: (error) => frame(error).replaceAll('\n', '\r\n'),
}
