import { schemaOf } from '../core/dto.js'
import type { ParameterDocumentation, RouteDocumentation } from '../core/endpoint.js'
import { answer, constant, COUNT, described, eventsOf, listOf, nullable, TEXT } from '../core/json-schema.js'
import { ESTIMATED_HEADERS, TRANSLATION_HEADER } from '../dialects/verdicts.js'
import { CountTokensRequestDto, MessagesRequestDto } from './messages.dto.js'

const PARAMETERS: readonly ParameterDocumentation[] = [
  TRANSLATION_HEADER,
  { in: 'header', name: 'anthropic-version', description: 'Travels on to the upstream', schema: TEXT },
  { in: 'header', name: 'anthropic-beta', description: 'Travels on to the upstream', schema: TEXT },
  { in: 'header', name: 'anthropic-user-profile-id', description: 'Travels on to the upstream', schema: TEXT },
  { in: 'query', name: 'beta', description: 'With true, travels on to the upstream', schema: TEXT },
]

const MESSAGE = answer('Message', 'A whole answer', {
  id: described('Of the answer'),
  type: constant('message'),
  role: described('assistant'),
  model: described('That answered'),
  content: listOf(
    answer('AnswerBlock', 'A part of an answer', {
      type: described('text, thinking, tool_use …'),
      'text?': described('Of a text'),
    }),
    'What the model says',
  ),
  'stop_reason?': nullable(described('Why the answer ended: end_turn, max_tokens, tool_use …')),
  'stop_sequence?': nullable(described('The sequence that ended it')),
  usage: answer('MessageUsage', 'Tokens that were used', {
    input_tokens: { ...COUNT, description: 'Of the request' },
    output_tokens: { ...COUNT, description: 'Of the answer' },
  }),
})

const EVENT = answer('MessageEvent', 'The data of one named event, from message_start to message_stop', {
  type: described('The same as the name of the event'),
  'index?': { ...COUNT, description: 'Of the block it is about' },
  'delta?': { description: 'What came to the block, or to the message' },
})

export const MESSAGES_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createMessage',
  tag: 'messages',
  summary: 'Messages-style chat: text, thinking, tools',
  description: 'Answers the last turn of a conversation. With stream true the answer comes as named events.',
  parameters: PARAMETERS,
  body: { 'application/json': schemaOf(MessagesRequestDto, 'MessageRequest', 'A conversation to go on with') },
  answer: {
    description: 'A message, or its named events with stream true',
    headers: ESTIMATED_HEADERS,
    content: { 'application/json': MESSAGE, 'text/event-stream': eventsOf(EVENT) },
  },
}

export const COUNT_TOKENS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'countMessageTokens',
  tag: 'messages',
  summary: 'How many input tokens a messages request would take',
  description: 'Nothing is generated and no tokens are charged.',
  parameters: PARAMETERS,
  body: { 'application/json': schemaOf(CountTokensRequestDto, 'CountTokensRequest', 'A conversation to be counted') },
  answer: {
    description: 'The number of tokens',
    headers: ESTIMATED_HEADERS,
    content: {
      'application/json': answer('TokenCount', 'A number of tokens', {
        input_tokens: { ...COUNT, description: 'Of the request' },
      }),
    },
  },
}
