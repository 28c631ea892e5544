import { tokensOf } from '../../core/text-tokens.js'
import { isRecord } from '../../core/validation-rules.js'

/** As vendors' own rules of thumb have it. */
const TOKENS_PER_MESSAGE = 4
const TOKENS_OF_ANSWER_HEAD = 3

interface Prompt {
  readonly messages: readonly unknown[]
  readonly tools?: unknown
}

/**
 * Roughly what the request of a chat completion costs in tokens: four ASCII characters, or one character of any other
 * script, to a token; so much for each message and for the answer's head. Texts and tools alone: what an image or a
 * recording costs does not show in its bytes.
 */
export function estimatePromptTokens({ messages, tools }: Prompt): number {
  let tokens = TOKENS_OF_ANSWER_HEAD + (tools == null ? 0 : tokensOf(JSON.stringify(tools)))
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + (isRecord(message) ? promptTokensIn(message) : 0)
  return tokens
}

function promptTokensIn({ content, tool_calls: calls }: Record<string, unknown>): number {
  return tokensOf(textOf(content)) + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}
