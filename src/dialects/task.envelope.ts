import { ERROR_KINDS } from '../core/errors.js'
import type { GatewayError } from '../core/gateway-error.js'
import { presentableMessage } from '../core/message-text.js'
import type { Envelope } from './envelope.js'

/** Where the family has a finer word than the kind's: our code → its code (design: Errors, rate_limited; upstream's table). */
const FINER_CODES: Readonly<Record<string, number>> = {
  concurrency_limit_exceeded: 1303,
  content_policy_violation: 1301,
}

function taskBody(error: GatewayError, requestId: string): { code: number; message: string; request_id: string } {
  return {
    code: FINER_CODES[error.details.code ?? ''] ?? ERROR_KINDS[error.kind].task.code,
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
