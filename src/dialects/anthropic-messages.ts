import type { ModelFields } from '../core/json-body.js'
import { mediaTokensIn, tokensOf } from '../core/token-counter.js'
import { isRecord } from '../core/validation-rules.js'
import type { SseDialect } from '../upstream/sse-relay.js'

/** The fields of a messages request that the gateway reads; all others are relayed unread. */
export interface MessagesFields extends ModelFields {
  readonly messages: readonly unknown[]
  readonly max_tokens?: number | null
  readonly stream?: boolean | null
}

/** Streamed messages: named events, LF, no `[DONE]`. */
export const MESSAGES_EVENTS: SseDialect = { completionMarks: ['event: message_stop'], errorMark: 'event: error' }

/** What stands around each message. */
const TOKENS_PER_MESSAGE = 4

type Fields = Readonly<Record<string, unknown>>

/**
 * Roughly the tokens of the prompt of a messages request: system, tools, messages and media. `isThinkingRead`: whether the upstream gets
 * the thinking blocks of the conversation.
 */
export function estimateInputTokens(request: object, isThinkingRead: boolean): number {
  const { system, tools, messages }: Fields = { ...request }
  let tokens = contentTokens(system) + (tools == null ? 0 : tokensOf(JSON.stringify(tools))) + mediaTokensIn(messages)
  if (!Array.isArray(messages)) return tokens
  for (const message of messages as readonly unknown[]) {
    tokens += TOKENS_PER_MESSAGE + (isRecord(message) ? contentTokens(message['content'], isThinkingRead) : 0)
  }
  return tokens
}

/** Of a text, or of blocks: their texts, thoughts, documents, calls of tools and what these have answered; no pictures. */
export function contentTokens(content: unknown, isThinkingRead = true): number {
  if (typeof content === 'string') return tokensOf(content)
  if (!Array.isArray(content)) return 0
  let tokens = 0
  // Read in place: conversations are of megabytes, and most are never estimated.
  for (const block of content as readonly unknown[]) if (isRecord(block)) tokens += blockTokens(block, isThinkingRead)
  return tokens
}

function blockTokens(block: Fields, isThinkingRead: boolean): number {
  const { text, thinking, content, name, input, title, context, source } = block
  const words = textTokens(text) + textTokens(name) + textTokens(title) + textTokens(context)
  const thoughts = isThinkingRead ? textTokens(thinking) : 0
  const called = isRecord(input) ? tokensOf(JSON.stringify(input)) : 0
  return words + thoughts + called + contentTokens(content, isThinkingRead) + sourceTokens(source)
}

const textTokens = (text: unknown): number => (typeof text === 'string' ? tokensOf(text) : 0)

/** Where a search result was found, and documents that are text; all others are media. */
function sourceTokens(source: unknown): number {
  if (!isRecord(source)) return textTokens(source)
  if (source['type'] === 'text') return textTokens(source['data'])
  return source['type'] === 'content' ? contentTokens(source['content']) : 0
}
