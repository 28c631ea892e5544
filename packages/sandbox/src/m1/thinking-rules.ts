import { fieldOf, isObject, type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'
import type { M1Model } from './m1-models.js'
import { signThinking, THINKING_TEXT } from './signature.js'

export interface Thinking {
  readonly display: 'summarized' | 'omitted'
}

const MIN_BUDGET_TOKENS = 1024
const INTERLEAVED_BETA = 'interleaved-thinking-2025-05-14'

/** Judges `thinking` and what it forbids elsewhere (section 6 of the messages notes). Undefined when it is off. */
export function judgeThinking(body: JsonObject, model: M1Model, betas: readonly string[]): Thinking | undefined {
  const thinking = body['thinking']
  if (!isObject(thinking)) return undefined
  const type = textOf(thinking['type'])
  if (!['enabled', 'adaptive', 'disabled', 'between_tools'].includes(type)) {
    reject(
      "thinking: Input tag found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'",
    )
  }
  if (type === 'disabled') return undefined
  if (type === 'enabled') judgeBudget(thinking, body, model, betas)
  else if (!model.adaptive) reject(`thinking.${type}: \`thinking.type.${type}\` is not supported by this model.`)
  judgeCompanions(body)
  const display = thinking['display'] ?? 'summarized'
  if (display !== 'summarized' && display !== 'omitted') {
    reject(`thinking.${type}.display: Input should be 'summarized' or 'omitted'`)
  }
  return { display }
}

function judgeBudget(thinking: JsonObject, body: JsonObject, model: M1Model, betas: readonly string[]): void {
  if (!model.classic) {
    reject('thinking.enabled: `thinking.type.enabled` is not supported by this model. Use `thinking.type.adaptive`.')
  }
  const path = 'thinking.enabled.budget_tokens'
  const budget = thinking['budget_tokens']
  if (budget === undefined) reject(`${path}: Field required`)
  if (typeof budget !== 'number' || !Number.isInteger(budget)) reject(`${path}: Input should be a valid integer`)
  if (budget < MIN_BUDGET_TOKENS) reject(`${path}: Input should be greater than or equal to ${MIN_BUDGET_TOKENS}`)
  const maxTokens = body['max_tokens']
  if (typeof maxTokens === 'number' && budget >= maxTokens && !betas.includes(INTERLEAVED_BETA)) {
    reject('`max_tokens` must be greater than `thinking.budget_tokens`. Please consult the documentation.')
  }
}

function judgeCompanions(body: JsonObject): void {
  const { temperature, top_p: topP, top_k: topK } = body
  if (temperature !== undefined && temperature !== 1) {
    reject('`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.')
  }
  if (typeof topP === 'number' && topP < 0.95) {
    reject('`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.')
  }
  if (topK !== undefined) reject('`top_k` must be unset when thinking is enabled.')
  const choice = fieldOf(body['tool_choice'], 'type')
  if (choice === 'any' || choice === 'tool') reject('Thinking may not be enabled when tool_choice forces tool use.')
  if (objectsOf(body['messages']).at(-1)?.['role'] === 'assistant') {
    reject(
      'When thinking is enabled, a final `assistant` message must start with a thinking block; prefill is not supported.',
    )
  }
}

/** In a tool loop the thinking of the latest assistant message must come back first and unchanged. */
export function judgeReturnedThinking(messages: readonly JsonObject[], thinkingIsOn: boolean): void {
  const index = messages.findLastIndex((message) => message['role'] === 'assistant')
  const blocks = objectsOf(messages[index]?.['content'])
  blocks.forEach((block, position) => {
    if (block['type'] !== 'thinking') return
    const signature = textOf(block['signature'])
    const thinking = textOf(block['thinking'])
    // With display "omitted" the text stays away and only the signature returns.
    if (signature === signThinking(thinking === '' ? THINKING_TEXT : thinking)) return
    const rule = '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.'
    reject(`messages.${index}.content.${position}: ${rule}`)
  })
  const first = textOf(blocks[0]?.['type'])
  const calls = blocks.some((block) => block['type'] === 'tool_use')
  if (!thinkingIsOn || !calls || first === 'thinking' || first === 'redacted_thinking') return
  const rule = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`.`
  const advice = 'When `thinking` is enabled, a final `assistant` message must start with a thinking block.'
  reject(`messages.${index}.content.0.type: ${rule} ${advice}`)
}
