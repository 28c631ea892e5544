import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, constant, COUNT, described, eventsOf, listOf, nullable, type Schema } from '../core/json-schema.js'
import { TRANSLATED_HEADERS, TRANSLATION_HEADER } from '../dialects/verdicts.js'
import { ChatRequestDto } from './chat.dto.js'

const USAGE = answer('ChatUsage', 'Tokens that were used', {
  prompt_tokens: { ...COUNT, description: 'Of the request' },
  completion_tokens: { ...COUNT, description: 'Of the answer' },
  total_tokens: { ...COUNT, description: 'Of both' },
})

const TOOL_CALL = answer('ChatToolCall', 'A tool the model calls; in a stream, a piece of that', {
  'index?': { ...COUNT, description: 'Of the call, in a stream' },
  'id?': nullable(described('To be repeated in tool_call_id of the answer')),
  'type?': nullable(described('function, or another kind')),
  'function?': { description: 'Its name, and its arguments as JSON text' },
})

const SAID = answer('ChatAnswer', 'What the model says; in a stream, a piece of that', {
  'role?': nullable(described('assistant')),
  'content?': nullable(described('Text')),
  'refusal?': nullable(described('Why the model refuses')),
  'tool_calls?': nullable(listOf(TOOL_CALL, 'Tools that the model calls')),
  'audio?': { description: 'Audio as Base64, with its id and transcript' },
})

const FINISH = nullable(described('Why the answer ended: stop, length, tool_calls …; null while it goes on'))

const choice = (title: string, said: string): Schema =>
  answer(title, 'One of the answers', {
    index: { ...COUNT, description: 'Of the answer' },
    [said]: SAID,
    'finish_reason?': FINISH,
  })

const COMMON = {
  id: described('Of the answer'),
  created: { type: 'integer', description: 'Unix seconds' },
  model: described('That answered'),
} as const

const COMPLETION = answer('ChatCompletion', 'A whole answer', {
  ...COMMON,
  object: constant('chat.completion'),
  choices: listOf(choice('ChatChoice', 'message'), 'As many as n asks for'),
  'usage?': nullable(USAGE),
})

const CHUNK = answer('ChatCompletionChunk', 'The data of one event; the last event is data: [DONE]', {
  ...COMMON,
  object: constant('chat.completion.chunk'),
  choices: listOf(choice('ChatChunkChoice', 'delta'), 'Empty where the event has the usage alone'),
  'usage?': nullable(USAGE),
})

export const CHAT_COMPLETIONS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createChatCompletion',
  tag: 'chat',
  summary: 'Chat completion: text, tools, audio in and out',
  description: 'Answers the last turn of a conversation. With stream true the answer comes as events.',
  parameters: [TRANSLATION_HEADER],
  body: { 'application/json': schemaOf(ChatRequestDto, 'ChatRequest', 'A conversation to go on with') },
  answer: {
    description: 'A chat.completion, or chat.completion.chunk events with stream true',
    headers: TRANSLATED_HEADERS,
    content: { 'application/json': COMPLETION, 'text/event-stream': eventsOf(CHUNK) },
  },
}
