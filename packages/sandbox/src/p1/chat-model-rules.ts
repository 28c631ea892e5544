import { estimateTokens } from '../server/generated-text.js'
import { isObject, type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'
import { quotedList } from './chat-field-rules.js'
import { contentText } from './chat-text.js'
import { chatTraits } from './chat-models.js'
import type { P1Family } from './p1-models.js'
import { strictFault } from './strict-schemas.js'

/** Judges what depends on the model. Throws OpenAiRejection. */
export function judgeModelLimits(body: JsonObject, model: string, family: P1Family): void {
  if (family === 'reasoning-chat' && typeof body['max_tokens'] === 'number') {
    unsupportedParameter('max_tokens', " Use 'max_completion_tokens' instead.")
  }
  judgeOutputLimit(body, model)
  judgeEffort(body, model)
  judgeFunctions(body, model)
  if (family === 'reasoning-chat') judgeSampling(body, model)
  if (isObject(body['web_search_options']) && !chatTraits(model).searches) {
    reject('Web search options not supported with this model.', 'web_search_options')
  }
  judgeLength(body, model)
}

export function unsupportedParameter(name: string, hint = ''): never {
  reject(`Unsupported parameter: '${name}' is not supported with this model.${hint}`, name, 'unsupported_parameter')
}

function judgeOutputLimit(body: JsonObject, model: string): void {
  const most = chatTraits(model).maxOutputTokens
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    const asked = body[name]
    if (typeof asked !== 'number' || asked <= most) continue
    const limit = `This model supports at most ${most} completion tokens, whereas you provided ${asked}.`
    reject(`${name} is too large: ${asked}. ${limit}`, name, 'invalid_value')
  }
}

function judgeEffort(body: JsonObject, model: string): void {
  const effort = body['reasoning_effort']
  if (typeof effort !== 'string') return
  const { efforts } = chatTraits(model)
  if (efforts.length === 0) reject('Unrecognized request argument supplied: reasoning_effort')
  if (efforts.includes(effort)) return
  const supported = `Supported values are: ${quotedList(efforts, 'and')}.`
  const message = `Unsupported value: 'reasoning_effort' does not support '${effort}' with this model. ${supported}`
  reject(message, 'reasoning_effort', 'unsupported_value')
}

function judgeFunctions(body: JsonObject, model: string): void {
  const { functionsNeed } = chatTraits(model)
  if (functionsNeed === undefined || !objectsOf(body['tools']).some(({ type }) => type === 'function')) return
  const effort = body['reasoning_effort'] ?? (functionsNeed === 'no effort' ? 'none' : undefined)
  if (effort === 'none') return
  const rule = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions.`
  reject(`${rule} To use function tools, use /v1/responses or set reasoning_effort to 'none'.`, 'reasoning_effort')
}

/** A model that thinks chooses by itself; those that can leave it do, unless an effort is asked for. */
function judgeSampling(body: JsonObject, model: string): void {
  const mayRest = chatTraits(model).efforts.includes('none')
  const effort = body['reasoning_effort'] ?? (mayRest ? 'none' : 'medium')
  if (effort === 'none') return
  const { temperature } = body
  if (typeof temperature === 'number' && temperature !== 1) {
    const value = `'temperature' does not support ${temperature} with this model.`
    reject(`Unsupported value: ${value} Only the default (1) value is supported.`, 'temperature', 'unsupported_value')
  }
  for (const name of ['top_p', 'presence_penalty', 'frequency_penalty', 'logprobs', 'logit_bias']) {
    if (!isStandard(name, body[name])) unsupportedParameter(name)
  }
}

export const isStandard = (name: string, value: unknown): boolean =>
  value == null || value === false || value === (name === 'top_p' ? 1 : 0)

function judgeLength(body: JsonObject, model: string): void {
  const { contextTokens } = chatTraits(model)
  const tokens = objectsOf(body['messages']).reduce(
    (sum, entry) => sum + estimateTokens(contentText(entry['content'])),
    0,
  )
  if (tokens <= contextTokens) return
  const limit = `This model's maximum context length is ${contextTokens} tokens.`
  const advice = `However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`
  reject(`${limit} ${advice}`, 'messages', 'context_length_exceeded')
}

/** Judges the schema of `response_format`, which with `strict` has rules of its own. Throws OpenAiRejection. */
export function judgeResponseSchema(body: JsonObject): void {
  const format = body['response_format']
  const described = isObject(format) ? format['json_schema'] : undefined
  if (isObject(described)) judgeStrictSchema(described, 'response_format')
}

/** Judges a named schema for answers. Throws OpenAiRejection. */
export function judgeStrictSchema(described: JsonObject, param: string, code: string | null = null): void {
  if (described['strict'] !== true) return
  const fault = strictFault(described['schema'] ?? {})
  if (fault !== undefined)
    reject(`Invalid schema for response_format '${textOf(described['name'])}': ${fault}`, param, code)
}
