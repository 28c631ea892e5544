import { randomBytes } from 'node:crypto'
import { parseJsonObject } from '../server/json-value.js'
import { type M1Block, stopOf } from './m1-answer.js'
import type { M1Request } from './m1-request.js'
import { type InputUsage, outputUsage } from './m1-usage.js'
import { signThinking } from './signature.js'

export function newMessageId(): string {
  return `msg_01${randomBytes(11).toString('hex')}`
}

/** The complete answer of section 4 of the messages notes. */
export function m1Message(request: M1Request, blocks: readonly M1Block[], input: InputUsage): object {
  const content = blocks.map(wholeBlock)
  return {
    model: request.model.resolved,
    id: newMessageId(),
    type: 'message',
    role: 'assistant',
    content,
    ...stopOf(blocks),
    usage: { ...input, ...outputUsage(blocks), service_tier: 'standard', inference_geo: 'not_available' },
  }
}

function wholeBlock(block: M1Block): object {
  switch (block.type) {
    case 'thinking':
      return {
        type: 'thinking',
        thinking: block.omitted ? '' : block.thinking,
        signature: signThinking(block.thinking),
      }
    case 'text':
      return { type: 'text', text: block.run.join() }
    case 'tool_use': {
      // `#args=` may hold anything; a complete answer can carry only an object.
      const input = parseJsonObject(Buffer.from(block.inputJson)) ?? {}
      return { type: 'tool_use', id: block.id, name: block.name, input }
    }
  }
}
