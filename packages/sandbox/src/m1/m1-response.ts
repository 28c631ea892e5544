import { stopOf, type M1Block } from './m1-answer.js'
import { newMessageId } from './m1-message.js'
import type { M1Request } from './m1-request.js'
import { outputUsage, type InputUsage } from './m1-usage.js'
import { signThinking } from './signature.js'

/** Blanks before the closing brace, as some recorded events carry them. */
const PADDING_EVERY = 3
const THINKING_PIECE_CHARACTERS = 16

/** The named events of section 5 of the messages notes, lazily; there is no `[DONE]`. */
export function* m1Events(request: M1Request, blocks: readonly M1Block[], input: InputUsage): Generator<string> {
  const message = {
    id: newMessageId(),
    type: 'message',
    role: 'assistant',
    model: request.model.resolved,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1, service_tier: 'standard' },
  }
  yield event('message_start', { message })
  for (const [index, block] of blocks.entries()) {
    yield event('content_block_start', { index, content_block: opening(block) })
    if (index === 0) yield 'event: ping\ndata: {"type": "ping"}\n\n'
    let number = 0
    for (const delta of deltas(block)) {
      number += 1
      yield event('content_block_delta', { index, delta }, number % PADDING_EVERY === 0 ? number % 12 : 0)
    }
    yield event('content_block_stop', { index })
  }
  // Totals, not increments.
  const usage = {
    input_tokens: input.input_tokens,
    cache_creation_input_tokens: input.cache_creation_input_tokens,
    cache_read_input_tokens: input.cache_read_input_tokens,
    ...outputUsage(blocks),
  }
  yield event('message_delta', { delta: stopOf(blocks), usage })
  yield event('message_stop', {})
}

function event(type: string, fields: object, blanks = 0): string {
  const data = JSON.stringify({ type, ...fields })
  return `event: ${type}\ndata: ${data.slice(0, -1)}${' '.repeat(blanks)}}\n\n`
}

function opening(block: M1Block): object {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'text':
      return { type: 'text', text: '' }
    case 'tool_use':
      return { type: 'tool_use', id: block.id, name: block.name, input: {} }
  }
}

function* deltas(block: M1Block): Generator<object> {
  switch (block.type) {
    case 'thinking':
      if (!block.omitted) {
        for (let start = 0; start < block.thinking.length; start += THINKING_PIECE_CHARACTERS) {
          yield { type: 'thinking_delta', thinking: block.thinking.slice(start, start + THINKING_PIECE_CHARACTERS) }
        }
      }
      yield { type: 'signature_delta', signature: signThinking(block.thinking) }
      break
    case 'text':
      for (const text of block.run) yield { type: 'text_delta', text }
      break
    case 'tool_use': {
      const middle = Math.floor(block.inputJson.length / 2)
      yield { type: 'input_json_delta', partial_json: '' }
      yield { type: 'input_json_delta', partial_json: block.inputJson.slice(0, middle) }
      yield { type: 'input_json_delta', partial_json: block.inputJson.slice(middle) }
    }
  }
}
