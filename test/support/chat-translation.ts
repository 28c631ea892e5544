import { GatewayError } from '../../src/core/errors.js'
import { JsonBody } from '../../src/core/json-body.js'
import { factsOf, type ModelFacts } from '../../src/dialects/model-facts.js'
import type { ChatFields } from '../../src/dialects/openai-wire.js'
import { chatOverMessages } from '../../src/dialects/translations/chat-over-messages/chat-over-messages.js'
import { OwnerSeals } from '../../src/dialects/translations/seals.js'
import type { Thoughts } from '../../src/dialects/translator.js'
import { Verdicts } from '../../src/dialects/verdicts.js'

/** Of a model that thinks by a budget. */
export const FACTS: ModelFacts = {
  ...factsOf(undefined),
  thinking: 'budget',
  maxTokensField: 'max_tokens',
  maxOutputTokens: 64_000,
}
export const SEALS = new OwnerSeals(Buffer.from('secret'), 'owner')
export const HELLO = [{ role: 'user', content: 'Hello' }]

interface Options {
  readonly facts?: Partial<ModelFacts>
  readonly thoughts?: Thoughts
  readonly isStrict?: boolean
}

/** A chat request, of JSON text or of fields added to a greeting, and what became of it. */
export function translation(request: string | object, { facts, thoughts, isStrict = false }: Options = {}) {
  const asked = { model: 'mine', max_tokens: 4000, messages: HELLO }
  const text = typeof request === 'string' ? request : JSON.stringify({ ...asked, ...request })
  const parsed = JsonBody.parse(Buffer.from(text))
  const body = parsed.as(parsed.fields as object as ChatFields)
  const verdicts = new Verdicts({ client: 'chat', upstream: 'messages' }, isStrict)
  const target = { upstreamModel: 'theirs', facts: { ...FACTS, ...facts }, requestId: 'r', seals: SEALS, thoughts }
  const translated = chatOverMessages(body, target, verdicts)
  const json = translated.request.bytes.toString()
  const sent = JSON.parse(json) as Record<string, unknown>
  return { translated, json, sent, approximated: verdicts.approximated, dropped: verdicts.dropped }
}

export const sentOf = (request: object, options?: Options): Record<string, unknown> =>
  translation(request, options).sent

export const messagesOf = (messages: readonly object[], options?: Options): unknown =>
  sentOf({ messages }, options)['messages']

export function refusalOf(request: object, options?: Options): GatewayError {
  try {
    translation(request, options)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

export const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
export const called = (id: string, text = '{}'): object => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
})
export const result = (id: string, content: unknown = 'done'): object => ({ role: 'tool', tool_call_id: id, content })
export const THOUGHT = { type: 'thinking', thinking: 'Hm.', signature: 'sig' }
export const REDACTED = { type: 'redacted_thinking', data: 'xx' }
export const PNG = 'data:image/png;base64,iVBORw0KGgo='
export const partOf = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] })

export function formatOf(schema: object, more: object = {}): object {
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema, ...more } } }
}

export function allowed(mode: string, name: string): object {
  const choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [{ type: 'function', function: { name } }] } }
  return { tools: [tool('f'), tool('h')], tool_choice: choice }
}
