import { schemaOf } from '../core/dto.js'
import type { ParameterDocumentation, RouteDocumentation } from '../core/endpoint.js'
import {
  answer,
  constant,
  COUNT,
  described,
  eventsOf,
  listOf,
  nullable,
  type Schema,
  TEXT,
} from '../core/json-schema.js'
import { ESTIMATED_HEADERS, TRANSLATED_HEADERS, TRANSLATION_HEADER } from '../dialects/verdicts.js'
import { ResponsesRequestDto } from './responses.dto.js'

const REQUEST = {
  'application/json': schemaOf(ResponsesRequestDto, 'ResponseRequest', 'What is asked, and how it is answered'),
}

const USAGE = answer('ResponseUsage', 'Tokens that were used', {
  input_tokens: { ...COUNT, description: 'Of the request' },
  output_tokens: { ...COUNT, description: 'Of the answer, reasoning included' },
  total_tokens: { ...COUNT, description: 'Of both' },
})

const OUTPUT_ITEM = answer('ResponseOutputItem', 'A part of the answer', {
  type: described('message, function_call, reasoning …'),
  'id?': nullable(described('Of the item')),
  'status?': nullable(described('in_progress, completed or incomplete')),
})

const ITEM = answer('ResponseItem', 'An item that was asked, as it is kept', {
  type: described('message, function_call_output, reasoning …'),
  'id?': nullable(described('Of the item')),
  'status?': nullable(described('in_progress, completed or incomplete')),
})

const RESPONSE = answer('Response', 'An answer with what it was asked for', {
  id: described('Of the response'),
  object: constant('response'),
  created_at: { type: 'number', description: 'Unix seconds' },
  status: described('completed, incomplete, failed, cancelled, queued, in_progress'),
  model: described('That answered'),
  output: listOf(OUTPUT_ITEM, 'In the order in which it was made'),
  'usage?': nullable(USAGE),
})

const EVENT = answer('ResponseEvent', 'A step of the answer; the last has the whole response', {
  type: described('response.created, response.output_text.delta, response.completed …'),
  'sequence_number?': { ...COUNT, description: 'Of the event' },
})

const ID: ParameterDocumentation = {
  in: 'path',
  name: 'id',
  description: 'Id of a response of the same key',
  schema: TEXT,
  required: true,
}
const query = (name: string, description: string, schema: Schema = TEXT): ParameterDocumentation => ({
  in: 'query',
  name,
  description,
  schema,
})
const INCLUDE = query('include', 'What is shown beside the usual', listOf(TEXT))

export const CREATE_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createResponse',
  tag: 'responses',
  summary: 'A response: text, tools, reasoning',
  description:
    'Answers as the Responses API does, with events if stream is true. What is kept belongs to the key that asked. With background true ' +
    'the response is made without a connection: ask for it until it has ended.',
  parameters: [TRANSLATION_HEADER],
  body: REQUEST,
  answer: {
    description: 'A response, or its events with stream true',
    headers: TRANSLATED_HEADERS,
    content: { 'application/json': RESPONSE, 'text/event-stream': eventsOf(EVENT) },
  },
  errors: ['not_found', 'overloaded'],
}

export const INPUT_TOKENS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'countResponseInputTokens',
  tag: 'responses',
  summary: 'Tokens of a request for a response',
  description: 'Counts, and answers nothing.',
  parameters: [TRANSLATION_HEADER],
  body: REQUEST,
  answer: {
    description: 'The number of tokens',
    headers: ESTIMATED_HEADERS,
    content: {
      'application/json': answer('ResponseInputTokens', 'Tokens of a request', {
        object: constant('response.input_tokens'),
        input_tokens: { ...COUNT, description: 'Of the request' },
      }),
    },
  },
  errors: ['not_found', 'overloaded'],
}

export const FIND_DOCUMENTATION: RouteDocumentation = {
  operationId: 'getResponse',
  tag: 'responses',
  summary: 'A kept response',
  description:
    'As its upstream shows it, or as it was answered by a translated model. Only the key that asked for it can read it.',
  parameters: [
    ID,
    INCLUDE,
    query('stream', 'Events instead, of a response that was created with background true', { type: 'boolean' }),
    query('starting_after', 'Number of the event behind which the events begin', { type: 'integer', minimum: 0 }),
  ],
  answer: {
    description: 'The response, or its events with stream true',
    content: { 'application/json': RESPONSE, 'text/event-stream': eventsOf(EVENT) },
  },
  errors: ['not_found', 'overloaded', 'upstream_failed', 'upstream_timeout'],
}

export const CANCEL_DOCUMENTATION: RouteDocumentation = {
  operationId: 'cancelResponse',
  tag: 'responses',
  summary: 'Cancels a response that is made in the background',
  description: 'Only of responses that were created with background true. One that has ended stays as it is.',
  parameters: [ID],
  answer: { description: 'The response as it is now', content: { 'application/json': RESPONSE } },
  errors: ['not_found', 'overloaded', 'upstream_failed', 'upstream_timeout'],
}

export const INPUT_ITEMS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'listResponseInputItems',
  tag: 'responses',
  summary: 'What a kept response was asked',
  description: 'The items of its input, in pages.',
  parameters: [
    ID,
    INCLUDE,
    query('after', 'Id of the item before the page'),
    query('before', 'Id of the item behind the page'),
    query('limit', 'Items of a page', { type: 'integer', minimum: 1, maximum: 100, description: 'Default: 20' }),
    query('order', 'Oldest or newest first', { ...TEXT, enum: ['asc', 'desc'] }),
  ],
  answer: {
    description: 'A page of items',
    content: {
      'application/json': answer('ResponseInputItems', 'A page of items', {
        object: constant('list'),
        data: listOf(ITEM, 'Items'),
        'first_id?': nullable(described('Of the first item')),
        'last_id?': nullable(described('Of the last item')),
        'has_more?': { type: 'boolean', description: 'Whether another page follows' },
      }),
    },
  },
  errors: ['not_found', 'overloaded', 'upstream_failed', 'upstream_timeout'],
}

export const DELETE_DOCUMENTATION: RouteDocumentation = {
  operationId: 'deleteResponse',
  tag: 'responses',
  summary: 'Deletes a kept response',
  description: 'At its upstream, and what the gateway keeps of it.',
  parameters: [ID],
  answer: {
    description: 'It is deleted',
    content: {
      'application/json': answer('DeletedResponse', 'What was deleted', {
        id: described('Of the response'),
        'object?': described('response'),
        deleted: { type: 'boolean', description: 'true' },
      }),
    },
  },
  errors: ['not_found', 'overloaded', 'upstream_failed', 'upstream_timeout'],
}
