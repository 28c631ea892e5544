import { createHash } from 'node:crypto'
import { fieldOf, type JsonObject, objectsOf } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import type { M1Block } from './m1-answer.js'

export interface InputUsage {
  readonly input_tokens: number
  readonly cache_creation_input_tokens: number
  readonly cache_read_input_tokens: number
  readonly cache_creation: { readonly ephemeral_5m_input_tokens: number; readonly ephemeral_1h_input_tokens: number }
}

const TOKENS_PER_MESSAGE = 4

/** An estimate over everything that is sent: system, tools and messages. */
export function countTokens(body: JsonObject): number {
  const messages = objectsOf(body['messages'])
  const texts = [body['system'], body['tools'], ...messages.map((message) => message['content'])]
  return texts.reduce<number>((sum, value) => sum + tokensOf(value), messages.length * TOKENS_PER_MESSAGE)
}

/**
 * Splits the input into plain and cached tokens. Marked blocks are written to the cache when `seen` does not know them
 * and read from it afterwards. `input_tokens` excludes both.
 */
export function inputUsage(body: JsonObject, seen: Set<string>): InputUsage {
  const carriers = [
    ...objectsOf(body['tools']),
    ...objectsOf(body['system']),
    ...objectsOf(body['messages']).flatMap((message) => objectsOf(message['content'])),
  ].filter((block) => fieldOf(block['cache_control'], 'type') === 'ephemeral')
  const written = { '5m': 0, '1h': 0 }
  let read = 0
  for (const block of carriers) {
    const tokens = tokensOf(block)
    const key = createHash('sha256').update(JSON.stringify(block)).digest('base64')
    if (seen.has(key)) read += tokens
    else written[fieldOf(block['cache_control'], 'ttl') === '1h' ? '1h' : '5m'] += tokens
    seen.add(key)
  }
  const creation = written['5m'] + written['1h']
  return {
    input_tokens: Math.max(1, countTokens(body) - creation - read),
    cache_creation_input_tokens: creation,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written['5m'], ephemeral_1h_input_tokens: written['1h'] },
  }
}

export interface OutputUsage {
  readonly output_tokens: number
  /** Of them; said by a model that has thought. */
  readonly output_tokens_details?: { readonly thinking_tokens: number }
}

/** Output tokens of all blocks, thinking included; valid when they were written. */
export function outputUsage(blocks: readonly M1Block[]): OutputUsage {
  const thinking = blocks.filter((block) => block.type === 'thinking')
  const details = { output_tokens_details: { thinking_tokens: tokensOfBlocks(thinking) } }
  return { output_tokens: tokensOfBlocks(blocks), ...(thinking.length === 0 ? {} : details) }
}

function tokensOfBlocks(blocks: readonly M1Block[]): number {
  return blocks.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.run.count
    return sum + estimateTokens(block.type === 'thinking' ? block.thinking : block.inputJson)
  }, 0)
}

function tokensOf(value: unknown): number {
  if (value === undefined) return 0
  return estimateTokens(typeof value === 'string' ? value : JSON.stringify(value))
}
