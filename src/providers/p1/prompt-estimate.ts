import { isRecord } from '../../common/validation/field-rules.js'

/** As vendors' own rules of thumb have it. */
const ASCII_PER_TOKEN = 4
const TOKENS_PER_MESSAGE = 4
const TOKENS_OF_ANSWER_HEAD = 3

/**
 * Roughly what the request of a chat completion costs in tokens: four ASCII characters, or one character of any other
 * script, to a token; so much for each message and for the answer's head. Texts and tools alone: what an image or a
 * recording costs does not show in its bytes. Undefined for what is no such request.
 */
export function estimatePromptTokens(body: Buffer): number | undefined {
  const { messages, tools } = parsed(body)
  if (!Array.isArray(messages)) return undefined
  let tokens = TOKENS_OF_ANSWER_HEAD + (tools == null ? 0 : tokensOf(JSON.stringify(tools)))
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + (isRecord(message) ? tokensIn(message) : 0)
  return tokens
}

function parsed(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString())
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

function tokensIn({ content, tool_calls: calls }: Record<string, unknown>): number {
  return tokensOf(textOf(content)) + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

export function tokensOf(text: string): number {
  let ascii = 0
  let others = 0
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) ascii++
    else others++
  }
  return Math.ceil(ascii / ASCII_PER_TOKEN) + others
}
