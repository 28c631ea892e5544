import { isObject, type JsonObject } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'

/** Judges one value; `path` is the name the refusal carries as `param`. Throws OpenAiRejection. */
export type ValueRule = (value: unknown, path: string) => void

export function wrongType(path: string, expected: string, value: unknown): never {
  reject(
    `Invalid type for '${path}': expected ${expected}, but got ${nameOfType(value)} instead.`,
    path,
    'invalid_type',
  )
}

export function missing(path: string): never {
  reject(`Missing required parameter: '${path}'.`, path, 'missing_required_parameter')
}

export function unknownParameter(path: string): never {
  reject(`Unknown parameter: '${path}'.`, path, 'unknown_parameter')
}

export function decimal(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number') wrongType(path, 'a decimal', value)
    judgeRange(value, path, 'decimal', min, max)
  }
}

export function integer(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) wrongType(path, 'an integer', value)
    judgeRange(value, path, 'integer', min, max)
  }
}

export const boolean: ValueRule = (value, path) => {
  if (typeof value !== 'boolean') wrongType(path, 'a boolean', value)
}

export function string(maxLength = Number.POSITIVE_INFINITY): ValueRule {
  return (value, path) => {
    if (typeof value !== 'string') wrongType(path, 'a string', value)
    if (value.length <= maxLength) return
    const limit = `Expected a string with maximum length ${maxLength}, but got a string with length ${value.length}`
    reject(`Invalid '${path}': string too long. ${limit} instead.`, path, 'string_above_max_length')
  }
}

export const object: ValueRule = (value, path) => {
  if (!isObject(value)) wrongType(path, 'an object', value)
}

export const array: ValueRule = (value, path) => {
  if (!Array.isArray(value)) wrongType(path, 'an array', value)
}

export function oneOf(...allowed: readonly string[]): ValueRule {
  return (value, path) => {
    if (typeof value !== 'string') wrongType(path, `one of ${quotedList(allowed, 'or')}`, value)
    if (allowed.includes(value)) return
    const supported = `Supported values are: ${quotedList(allowed, 'and')}.`
    reject(`Invalid value: '${value}'. ${supported}`, path, 'invalid_value')
  }
}

export function nullable(rule: ValueRule): ValueRule {
  return (value, path) => {
    if (value !== null) rule(value, path)
  }
}

export type FieldRules = Readonly<Record<string, ValueRule>>

/** Judges each field that is there by its rule; `path` is where the object stands. Throws OpenAiRejection. */
export function judgeByRules(
  value: JsonObject,
  rules: FieldRules,
  { path = '', acceptUnknownFields = false }: { path?: string; acceptUnknownFields?: boolean } = {},
): void {
  for (const [name, field] of Object.entries(value)) {
    const fieldPath = path === '' ? name : `${path}.${name}`
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (rule !== undefined) rule(field, fieldPath)
    else if (!acceptUnknownFields) unknownParameter(fieldPath)
  }
}

export function quotedList(names: readonly string[], conjunction: string): string {
  const quoted = names.map((name) => `'${name}'`)
  if (quoted.length < 2) return quoted.join('')
  return `${quoted.slice(0, -1).join(', ')}${quoted.length > 2 ? ',' : ''} ${conjunction} ${quoted.at(-1) ?? ''}`
}

function judgeRange(value: number, path: string, kind: 'decimal' | 'integer', min: number, max: number): void {
  if (value >= min && value <= max) return
  const above = value > max
  const side = above ? ['above', 'maximum', '<=', max] : ['below', 'minimum', '>=', min]
  const text = `${kind} ${side[0] ?? ''} ${side[1] ?? ''} value. Expected a value ${side[2] ?? ''} ${side[3] ?? ''}`
  reject(
    `Invalid '${path}': ${text}, but got ${value} instead.`,
    path,
    `${kind}_${above ? 'above_max' : 'below_min'}_value`,
  )
}

function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return 'a string'
  if (typeof value === 'boolean') return 'a boolean'
  if (typeof value !== 'number') return 'an object'
  return Number.isInteger(value) ? 'an integer' : 'a decimal'
}

const MAX_STOPS = 4
const MAX_METADATA_PAIRS = 16

/** The request fields of section 1 of the chat notes; `messages`, `tools` and `audio` have judges of their own. */
const FIELD_RULES: FieldRules = {
  model: string(),
  messages: array,
  modalities: nullable(modalities),
  audio: nullable(object),
  max_completion_tokens: nullable(integer(1, Number.MAX_SAFE_INTEGER)),
  max_tokens: nullable(integer(1, Number.MAX_SAFE_INTEGER)),
  temperature: nullable(decimal(0, 2)),
  top_p: nullable(decimal(0, 1)),
  n: nullable(integer(1, 128)),
  stop: nullable(stop),
  presence_penalty: nullable(decimal(-2, 2)),
  frequency_penalty: nullable(decimal(-2, 2)),
  logit_bias: nullable(logitBias),
  logprobs: nullable(boolean),
  top_logprobs: nullable(integer(0, 20)),
  response_format: responseFormat,
  // A 64-bit seed passes JSON.parse as a rounded number, which is still an integer.
  seed: nullable(integer(-(2 ** 63), 2 ** 63)),
  stream: nullable(boolean),
  stream_options: nullable(streamOptions),
  tools: array,
  tool_choice: () => undefined,
  parallel_tool_calls: boolean,
  reasoning_effort: nullable(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
  verbosity: nullable(oneOf('low', 'medium', 'high')),
  service_tier: nullable(oneOf('auto', 'default', 'flex', 'scale', 'priority', 'fast')),
  store: nullable(boolean),
  metadata: nullable(metadata),
  moderation: nullable(object),
  prediction: nullable(prediction),
  web_search_options: webSearchOptions,
  user: string(),
  safety_identifier: nullable(string(64)),
  prompt_cache_key: nullable(string()),
  prompt_cache_options: promptCacheOptions,
  prompt_cache_retention: nullable(oneOf('in_memory', 'in-memory', '24h')),
  functions: array,
  function_call: () => undefined,
}

/** Judges every top-level field by itself and in combination. Throws OpenAiRejection. */
export function judgeFields(body: JsonObject, acceptUnknownFields: boolean): void {
  judgeByRules(body, FIELD_RULES, { acceptUnknownFields })
  if (isObject(body['stream_options']) && body['stream'] !== true) {
    reject("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (typeof body['top_logprobs'] === 'number' && body['logprobs'] !== true) {
    reject("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", 'top_logprobs')
  }
  if (isObject(body['prediction']) && (isObject(body['audio']) || Array.isArray(body['tools']))) {
    reject("The 'prediction' parameter cannot be combined with 'audio' or 'tools'.", 'prediction')
  }
}

function modalities(value: unknown, path: string): void {
  if (!Array.isArray(value)) wrongType(path, 'an array of strings', value)
  value.forEach((entry: unknown, index) => {
    oneOf('text', 'audio')(entry, `${path}[${index}]`)
  })
}

function stop(value: unknown, path: string): void {
  if (typeof value === 'string') return
  if (!Array.isArray(value)) wrongType(path, 'one of a string or array of strings', value)
  if (value.length > MAX_STOPS) {
    const limit = `Expected an array with maximum length ${MAX_STOPS}, but got an array with length ${value.length}`
    reject(`Invalid '${path}': array too long. ${limit} instead.`, path, 'array_above_max_length')
  }
  value.forEach((entry: unknown, index) => {
    string()(entry, `${path}[${index}]`)
  })
}

function logitBias(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  for (const [token, bias] of Object.entries(value)) decimal(-100, 100)(bias, `${path}.${token}`)
}

function responseFormat(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  oneOf('text', 'json_object', 'json_schema')(value['type'], `${path}.type`)
  if (value['type'] !== 'json_schema') return
  object(value['json_schema'], `${path}.json_schema`)
  string(64)(isObject(value['json_schema']) ? value['json_schema']['name'] : undefined, `${path}.json_schema.name`)
}

function streamOptions(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  for (const [name, flag] of Object.entries(value)) {
    if (name !== 'include_usage' && name !== 'include_obfuscation') unknownParameter(`${path}.${name}`)
    boolean(flag, `${path}.${name}`)
  }
}

function prediction(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  oneOf('content')(value['type'], `${path}.type`)
  const { content } = value
  if (content === undefined) missing(`${path}.content`)
  if (typeof content === 'string' || Array.isArray(content)) return
  wrongType(`${path}.content`, 'one of a string or array of objects', content)
}

function webSearchOptions(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  const { search_context_size: size, user_location: place } = value
  if (size !== undefined) oneOf('low', 'medium', 'high')(size, `${path}.search_context_size`)
  if (place !== undefined) nullable(object)(place, `${path}.user_location`)
}

export function promptCacheOptions(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  const { mode, ttl } = value
  if (mode !== undefined) oneOf('implicit', 'explicit')(mode, `${path}.mode`)
  if (ttl !== undefined) oneOf('30m')(ttl, `${path}.ttl`)
}

export function metadata(value: unknown, path: string): void {
  if (!isObject(value)) wrongType(path, 'an object', value)
  const pairs = Object.entries(value)
  if (pairs.length > MAX_METADATA_PAIRS) {
    reject(`Invalid '${path}': too many properties.`, path, 'object_above_max_properties')
  }
  for (const [key, text] of pairs) {
    string(64)(key, path)
    string(512)(text, `${path}.${key}`)
  }
}
