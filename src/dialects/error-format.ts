import type { Dialect } from '../core/endpoint.js'
import { ERROR_KINDS, type GatewayError, presentableMessage } from '../core/errors.js'

/** An error as a dialect sends it over HTTP; `body` is complete JSON text. */
interface RenderedError {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/** Renders errors in one dialect. */
interface ErrorFormat {
  readonly status: (error: GatewayError) => number
  readonly body: (error: GatewayError, requestId: string) => string
  /** Event stream frame for a failure after the first byte; never followed by a terminator. */
  readonly frame: (error: GatewayError, requestId: string) => string
  /** This dialect's own request id header, sent in addition to `x-request-id`. */
  readonly requestIdHeader?: string
}

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
const chatErrorFormat: ErrorFormat = {
  status: (error) => ERROR_KINDS[error.kind].audio.chatStatus,
  body: audioBody,
  frame,
}

/** `/v1/audio/*`: the same body, but upstream failures are 500 and unknown models 400, as the specification's table says. */
const audioErrorFormat: ErrorFormat = {
  status: (error) => ERROR_KINDS[error.kind].audio.status,
  body: audioBody,
  // Event streams of the audio endpoints are framed with CRLF.
  frame: (error) => frame(error).replaceAll('\n', '\r\n'),
}

/** `{type: "error", error: {type, message}, request_id}` of the messages family. */
function messagesBody(error: GatewayError, requestId: string): string {
  return JSON.stringify({
    type: 'error',
    error: { type: ERROR_KINDS[error.kind].messages.type, message: presentableMessage(error.message) },
    request_id: requestId,
  })
}

const messagesErrorFormat: ErrorFormat = {
  status: (error) => ERROR_KINDS[error.kind].messages.status,
  body: messagesBody,
  frame: (error, requestId) => `event: error\ndata: ${messagesBody(error, requestId)}\n\n`,
  requestIdHeader: 'request-id',
}

/** Codes with an error type of their own in the messages dialect (design: Errors, rate_limited; upstream's table). */
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
const taskErrorFormat: ErrorFormat = {
  status,
  body: (error, requestId) => JSON.stringify(taskBody(error, requestId)),
  frame: (error, requestId) => `data: ${JSON.stringify(taskBody(error, requestId))}\n\n`,
}

/** Clients of the image dialect read the text from `description`. */
const imageErrorFormat: ErrorFormat = {
  status,
  body: (error, requestId) => JSON.stringify(imageBody(error, requestId)),
  frame: (error, requestId) => `data: ${JSON.stringify(imageBody(error, requestId))}\n\n`,
}

function imageBody(error: GatewayError, requestId: string): object {
  const body = taskBody(error, requestId)
  return { ...body, description: body.message }
}

export const ERROR_FORMATS: Readonly<Record<Dialect, ErrorFormat>> = {
  openai: chatErrorFormat,
  'openai-audio': audioErrorFormat,
  messages: messagesErrorFormat,
  task: taskErrorFormat,
  image: imageErrorFormat,
}

/** The complete HTTP response for an error in a dialect: status, headers and JSON text. */
export function renderError(error: GatewayError, dialect: Dialect, requestId: string): RenderedError {
  const envelope = ERROR_FORMATS[dialect]
  const relayed = error.details.relayed
  return {
    status: relayed?.status ?? envelope.status(error),
    headers: errorHeaders(error, envelope, requestId),
    body: relayed?.body ?? envelope.body(error, requestId),
  }
}

function errorHeaders(error: GatewayError, envelope: ErrorFormat, requestId: string): Record<string, string> {
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
