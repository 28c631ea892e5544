import { ERROR_KINDS } from '../error-kinds.js'
import type { GatewayError } from '../gateway-error.js'
import { presentableMessage } from '../message-text.js'
import type { Envelope } from './envelope.js'

function taskBody(error: GatewayError, requestId: string): { code: number; message: string; request_id: string } {
  return {
    code: ERROR_KINDS[error.kind].task.code,
    message: presentableMessage(error.message),
    request_id: requestId,
  }
}

const status = (error: GatewayError): number => ERROR_KINDS[error.kind].task.status

/** `{code, message, request_id}`, code never 0: video and document. */
export const taskEnvelope: Envelope = {
  status,
  body: (error, requestId) => JSON.stringify(taskBody(error, requestId)),
  frame: (error, requestId) => `data: ${JSON.stringify(taskBody(error, requestId))}\n\n`,
}

/** The image family's clients read the text under `description`. */
export const imageEnvelope: Envelope = {
  status,
  body: (error, requestId) => JSON.stringify(imageBody(error, requestId)),
  frame: (error, requestId) => `data: ${JSON.stringify(imageBody(error, requestId))}\n\n`,
}

function imageBody(error: GatewayError, requestId: string): object {
  const body = taskBody(error, requestId)
  return { ...body, description: body.message }
}
