import { type Dialect, dialectsOf, type RouteSpec } from '../core/endpoint.js'
import { ERROR_KINDS, type ErrorKind, GatewayError } from '../core/errors.js'
import { answer, constant, described, nullable, type Schema } from '../core/json-schema.js'
import { ERROR_FORMATS } from './error-format.js'

const MESSAGE = described('What is wrong, for people; it never holds a secret')
const REQUEST_ID = described('The same as the header x-request-id')

const OPENAI_ERROR = answer('OpenAIError', 'An error of the chat, audio, models, usage, limits and admin routes', {
  error: {
    type: 'object',
    description: 'The error itself',
    required: ['message', 'type', 'param', 'code'],
    additionalProperties: true,
    properties: {
      message: MESSAGE,
      type: described('The family of the error, such as invalid_request_error'),
      param: nullable(described('The field at fault, as the caller wrote its path; null where there is none')),
      code: nullable(described('A stable word for programs, such as model_not_found')),
    },
  },
})

const MESSAGES_ERROR = answer('MessagesError', 'An error of the messages routes', {
  type: constant('error', 'Always error'),
  error: {
    type: 'object',
    description: 'The error itself',
    required: ['type', 'message'],
    additionalProperties: true,
    properties: { type: described('The family of the error, such as invalid_request_error'), message: MESSAGE },
  },
  request_id: REQUEST_ID,
})

const TASK_MEMBERS = {
  code: { type: 'integer', minimum: 1, description: 'The number of the error; never 0' },
  message: MESSAGE,
  request_id: REQUEST_ID,
} as const satisfies Readonly<Record<string, Schema>>

const TASK_ERROR = answer('TaskError', 'An error of the video, callback and document routes', TASK_MEMBERS)

const IMAGE_ERROR = answer('ImageError', 'An error of the image routes', {
  ...TASK_MEMBERS,
  description: described('The same as message'),
})

/** The body of errors in each dialect, and how a response of it is called. */
const ERROR_BODIES: Readonly<Record<Dialect, { readonly name: string; readonly schema: Schema }>> = {
  openai: { name: 'OpenAIError', schema: OPENAI_ERROR },
  'openai-audio': { name: 'AudioError', schema: OPENAI_ERROR },
  messages: { name: 'MessagesError', schema: MESSAGES_ERROR },
  task: { name: 'TaskError', schema: TASK_ERROR },
  image: { name: 'ImageError', schema: IMAGE_ERROR },
}

/** What callers read of each kind; those they never get are not there. */
const MEANINGS: Readonly<Partial<Record<ErrorKind, string>>> = {
  invalid_request: 'the request is not valid, and the message names the field',
  unauthorized: 'no key was sent, or one that is not valid',
  forbidden_model: 'the key may not use the model',
  forbidden_origin: 'browsers of this origin are not let in',
  unknown_model: 'no such model is served here',
  not_found: 'there is no such thing',
  method_not_allowed: 'the path has no such method; Allow names those it has',
  upgrade_required: 'the request does not ask for WebSocket version 13',
  unsupported_media_type: 'the body is of a wrong media type, or compressed',
  request_timeout: 'the request did not arrive in time',
  header_fields_too_large: 'the headers are too large',
  conflict: 'it contradicts what is there',
  idempotency_running: 'a request under the same Idempotency-Key has not ended',
  unprocessable: 'the content cannot be used',
  payload_too_large: 'the body, or a file in it, is larger than its limit',
  rate_limited: 'too many requests; Retry-After says when to come back',
  overloaded: 'the gateway is full or shuts down; Retry-After says when to come back',
  upstream_failed: 'the upstream failed',
  upstream_overloaded: 'the upstream has all it can do; Retry-After says when to come back',
  upstream_timeout: 'the upstream did not answer in time',
  internal: 'the gateway failed',
}

const statusOf = (dialect: Dialect, kind: ErrorKind): number =>
  ERROR_FORMATS[dialect].status(new GatewayError(kind, ''))

/** Of everything that reaches the gateway. */
const ALWAYS: readonly ErrorKind[] = [
  'invalid_request',
  'method_not_allowed',
  'request_timeout',
  'header_fields_too_large',
  'overloaded',
  'internal',
]
const OF_KEYS: readonly ErrorKind[] = ['unauthorized', 'rate_limited']
const OF_BODIES: readonly ErrorKind[] = ['payload_too_large', 'unsupported_media_type']
/** An upstream's own refusal of the caller's request keeps its status. */
const OF_MODELS: readonly ErrorKind[] = [
  ...(['forbidden_model', 'unknown_model', 'conflict', 'unprocessable'] as const),
  ...(['payload_too_large', 'upstream_failed', 'upstream_overloaded', 'upstream_timeout'] as const),
]

/** Every kind of failure that a route may answer with. */
function errorKindsOf({ keyHeaders, bodyLimit, capability, documentation }: RouteSpec): ReadonlySet<ErrorKind> {
  return new Set([
    ...ALWAYS,
    ...(keyHeaders.length === 0 ? [] : OF_KEYS),
    ...(bodyLimit === 0 ? [] : OF_BODIES),
    ...(capability === 'none' ? [] : OF_MODELS),
    ...((documentation !== 'none' && documentation.errors) || []),
  ])
}

/** An error response that all routes of a dialect share. */
export interface ErrorResponse {
  readonly name: string
  readonly status: number
  readonly description: string
  readonly schema: Schema
}

/** The error responses of a route, by status. */
export function errorResponsesOf(route: RouteSpec): readonly ErrorResponse[] {
  const dialects = dialectsOf(route)
  const kinds = [...errorKindsOf(route)]
  const statuses = new Set(dialects.flatMap((dialect) => kinds.map((kind) => statusOf(dialect, kind))))
  return [...statuses].sort((one, other) => one - other).map((status) => errorResponse(dialects, status))
}

/** Clients of several dialects each get the body of theirs. */
function errorResponse(dialects: readonly Dialect[], status: number): ErrorResponse {
  const bodies = dialects.map((dialect) => ERROR_BODIES[dialect])
  const kinds = (Object.keys(ERROR_KINDS) as ErrorKind[]).filter((kind) =>
    dialects.some((dialect) => statusOf(dialect, kind) === status),
  )
  const meanings = new Set(kinds.map((kind) => MEANINGS[kind]).filter((meaning) => meaning !== undefined))
  const text = [...meanings].join(', or ')
  const description = text.charAt(0).toUpperCase() + text.slice(1)
  const [only, ...others] = bodies
  if (only !== undefined && others.length === 0) {
    return { name: `${only.name}${status}`, status, description, schema: only.schema }
  }
  return { name: `SharedError${status}`, status, description, schema: { anyOf: bodies.map(({ schema }) => schema) } }
}
