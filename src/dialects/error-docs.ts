import { applyDecorators } from '@nestjs/common'
import { ApiResponse } from '@nestjs/swagger'

const NULLABLE_TEXT = { type: ['string', 'null'] } as const

/** The error body of audio, chat and admin routes. */
export const OPENAI_ERROR = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'type', 'param', 'code'],
      properties: { message: { type: 'string' }, type: { type: 'string' }, param: NULLABLE_TEXT, code: NULLABLE_TEXT },
    },
  },
}

const MESSAGES_ERROR = {
  type: 'object',
  required: ['type', 'error', 'request_id'],
  properties: {
    type: { type: 'string', enum: ['error'] },
    error: {
      type: 'object',
      required: ['type', 'message'],
      properties: { type: { type: 'string' }, message: { type: 'string' } },
    },
    request_id: { type: 'string' },
  },
}

const TASK_ERROR = {
  type: 'object',
  required: ['code', 'message', 'request_id'],
  properties: {
    code: { type: 'integer', description: 'Never 0' },
    message: { type: 'string' },
    request_id: { type: 'string' },
  },
}

const CASES: Readonly<Record<string, string>> = {
  400: 'The request is not valid; param names the field',
  401: 'No API key, or one that is not valid',
  403: 'The key has no access to the model',
  404: 'The model does not exist here',
  408: 'The body did not arrive in time',
  413: 'The body is larger than the limit of the route',
  415: 'The body is of the wrong media type',
  426: 'The request does not ask for WebSocket version 13',
  429: 'Too many requests; Retry-After says when to come back',
  500: 'The upstream provider failed',
  502: 'The upstream provider failed',
  503: 'The gateway is full or shuts down; Retry-After says when to come back',
  504: 'The upstream provider did not answer in time',
}

/** Statuses with another meaning in the task dialect. */
const TASK_CASES: Readonly<Record<string, string>> = {
  ...CASES,
  400: 'The request is not valid; the message names the field',
  404: 'The caller has no such task',
  409: 'A request under the same Idempotency-Key has not ended',
  422: 'Another body was sent under the same Idempotency-Key',
}

/** Statuses with another meaning for documents. */
const DOCUMENT_CASES: Readonly<Record<string, string>> = {
  ...TASK_CASES,
  413: 'The document, or the request, is larger than its limit',
  415: 'The request, or the document, is of no format that is read',
  422: 'The document cannot be read: broken, protected by a password, or without text',
  500: 'The gateway failed to read the document',
  502: 'The server of the document, or the upstream reader, failed',
  503: 'Too many documents at once, or the gateway shuts down; Retry-After says when to come back',
  504: 'The document was not read in time',
}

/** One error response in the OpenAPI document for each status, described by `cases`. */
export const responses = (schema: object, statuses: readonly number[], cases = CASES): MethodDecorator =>
  applyDecorators(
    ...statuses.map((status) =>
      ApiResponse({ status, description: cases[status] ?? '', content: { 'application/json': { schema } } }),
    ),
  )

export const ApiAudioErrors = (): MethodDecorator => responses(OPENAI_ERROR, [400, 401, 403, 408, 413, 415, 429, 500])

/** Error responses of chat and models: the audio body under other statuses. */
export const ApiChatErrors = (): MethodDecorator =>
  responses(OPENAI_ERROR, [400, 401, 403, 404, 408, 413, 415, 429, 502, 504])

/** Error responses of an upgrade, all before the 101. */
export const ApiUpgradeErrors = (): MethodDecorator =>
  responses(OPENAI_ERROR, [400, 401, 403, 404, 426, 429, 502, 503, 504])

export const ApiMessagesErrors = (): MethodDecorator =>
  responses(MESSAGES_ERROR, [400, 401, 403, 404, 408, 413, 415, 429, 502, 504])

export const ApiTaskCreateErrors = (): MethodDecorator =>
  responses(TASK_ERROR, [400, 401, 403, 408, 409, 413, 415, 422, 429, 502, 503, 504], TASK_CASES)

/** Error responses of reading tasks and their callbacks. */
export const ApiTaskErrors = (): MethodDecorator =>
  responses(TASK_ERROR, [400, 401, 404, 429, 502, 503, 504], TASK_CASES)

export const ApiDocumentErrors = (): MethodDecorator =>
  responses(TASK_ERROR, [400, 401, 408, 413, 415, 422, 429, 500, 502, 503, 504], DOCUMENT_CASES)
