import type { GatewayError } from '../../src/core/errors.js'
import { factsOf, type ModelFacts } from '../../src/dialects/model-facts.js'
import { chatOverMessages } from '../../src/dialects/translations/chat-over-messages/chat-over-messages.js'
import { OwnerSeals } from '../../src/dialects/translations/seals.js'
import { thrownBy, TranslationRun, type TranslationSetting } from './translation.js'

/** Of a model that thinks by a budget. */
export const FACTS: ModelFacts = {
  ...factsOf(undefined),
  thinking: 'budget',
  maxTokensField: 'max_tokens',
  maxOutputTokens: 64_000,
}
export const SEALS = new OwnerSeals(Buffer.from('secret'), 'owner')
export const HELLO = [{ role: 'user', content: 'Hello' }]

type Options = Pick<TranslationSetting, 'facts' | 'thoughts' | 'isStrict'>

/** A chat request, of JSON text or of fields added to a greeting, and what became of it. */
export function translation(request: string | object, { facts, ...setting }: Options = {}) {
  const fields =
    typeof request === 'string' ? request : { model: 'mine', max_tokens: 4000, messages: HELLO, ...request }
  const run = new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, fields, {
    upstreamModel: 'theirs',
    seals: SEALS,
    ...setting,
    facts: { ...FACTS, ...facts },
  })
  const { translation: translated, sentText: json, sent, verdicts } = run
  return { translated, json, sent, approximated: verdicts.approximated, dropped: verdicts.dropped }
}

export const sentOf = (request: object, options?: Options): Record<string, unknown> =>
  translation(request, options).sent

export const messagesOf = (messages: readonly object[], options?: Options): unknown =>
  sentOf({ messages }, options)['messages']

export const refusalOf = (request: object, options?: Options): GatewayError =>
  thrownBy(() => translation(request, options))

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
