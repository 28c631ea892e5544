import { isObject, type JsonObject } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'
import {
  array,
  boolean,
  decimal,
  type FieldRules,
  integer,
  judgeByRules,
  metadata,
  missing,
  nullable,
  object,
  oneOf,
  promptCacheOptions,
  string,
  type ValueRule,
  wrongType,
} from './chat-field-rules.js'

/** An object with these fields and no others; the names behind are those it cannot do without. */
export function shape(rules: FieldRules, ...required: readonly string[]): ValueRule {
  return (value, path) => {
    if (!isObject(value)) wrongType(path, 'an object', value)
    for (const name of required) if (value[name] === undefined) missing(`${path}.${name}`)
    judgeByRules(value, rules, { path })
  }
}

/** A list whose entries follow one rule. */
export function listOfRule(rule: ValueRule): ValueRule {
  return (value, path) => {
    if (!Array.isArray(value)) wrongType(path, 'an array', value)
    value.forEach((entry: unknown, index) => {
      rule(entry, `${path}[${index}]`)
    })
  }
}

/** Members that are judged elsewhere, together with what they depend on. */
export const anything: ValueRule = () => undefined

const INCLUDABLE = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
]

const SUMMARIES = oneOf('auto', 'concise', 'detailed')

const REASONING = shape({
  context: nullable(oneOf('auto', 'current_turn', 'all_turns')),
  effort: nullable(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
  generate_summary: nullable(SUMMARIES),
  mode: string(),
  summary: nullable(SUMMARIES),
})

const JSON_SCHEMA_FORMAT = shape(
  {
    type: anything,
    name: string(64),
    schema: object,
    description: nullable(string()),
    strict: nullable(boolean),
  },
  'name',
  'schema',
)

const format: ValueRule = (value, path) => {
  if (!isObject(value)) wrongType(path, 'an object', value)
  if (value['type'] === undefined) missing(`${path}.type`)
  oneOf('text', 'json_object', 'json_schema')(value['type'], `${path}.type`)
  const rule = value['type'] === 'json_schema' ? JSON_SCHEMA_FORMAT : shape({ type: anything })
  rule(value, path)
}

const TEXT = shape({ format, verbosity: nullable(oneOf('low', 'medium', 'high')) })

/** At least so many tokens must be allowed. */
const MINIMUM_OUTPUT_TOKENS = 16

/** What both a response and the count of its input take. */
const INPUT_FIELDS: FieldRules = {
  conversation: anything,
  input: anything,
  instructions: nullable(string()),
  model: string(),
  parallel_tool_calls: nullable(boolean),
  previous_response_id: nullable(string()),
  reasoning: nullable(REASONING),
  text: nullable(TEXT),
  tool_choice: anything,
  tools: nullable(array),
  truncation: nullable(oneOf('auto', 'disabled')),
}

const CREATE_FIELDS: FieldRules = {
  ...INPUT_FIELDS,
  background: nullable(boolean),
  context_management: nullable(
    listOfRule(shape({ type: oneOf('compaction'), compact_threshold: nullable(integer(1000, 1e9)) }, 'type')),
  ),
  include: nullable(listOfRule(oneOf(...INCLUDABLE))),
  max_output_tokens: nullable(integer(MINIMUM_OUTPUT_TOKENS, Number.MAX_SAFE_INTEGER)),
  metadata: nullable(metadata),
  moderation: nullable(object),
  prompt: nullable(shape({ id: string(), variables: nullable(object), version: nullable(string()) }, 'id')),
  prompt_cache_key: nullable(string()),
  prompt_cache_options: promptCacheOptions,
  prompt_cache_retention: nullable(oneOf('in_memory', '24h')),
  safety_identifier: nullable(string(64)),
  service_tier: nullable(oneOf('auto', 'default', 'flex', 'scale', 'priority')),
  store: nullable(boolean),
  stream: nullable(boolean),
  stream_options: nullable(shape({ include_obfuscation: boolean })),
  temperature: nullable(decimal(0, 2)),
  top_logprobs: nullable(integer(0, 20)),
  top_p: nullable(decimal(0, 1)),
  user: nullable(string()),
}

const COUNT_FIELDS: FieldRules = { ...INPUT_FIELDS, model: nullable(string()), personality: string() }

/** Fields of chat that have another place here: the upstream says which. */
const MOVED: Readonly<Record<string, string>> = {
  messages: 'input',
  response_format: 'text.format',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  reasoning_effort: 'reasoning.effort',
  verbosity: 'text.verbosity',
}

/** Judges every top-level field by itself and in combination. Throws OpenAiRejection. */
export function judgeCreateFields(body: JsonObject, acceptUnknownFields: boolean): void {
  for (const [name, place] of Object.entries(MOVED)) if (body[name] !== undefined) moved(name, place)
  judgeByRules(body, CREATE_FIELDS, { acceptUnknownFields })
  if (isObject(body['stream_options']) && body['stream'] !== true) {
    reject("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (body['background'] === true && body['store'] === false) {
    reject("Background mode requires 'store' to be true.", 'background', 'invalid_value')
  }
}

export function judgeCountFields(body: JsonObject, acceptUnknownFields: boolean): void {
  judgeByRules(body, COUNT_FIELDS, { acceptUnknownFields })
}

function moved(name: string, place: string): never {
  const where = `In the Responses API, this parameter has moved to '${place}'. Try again with the new parameter.`
  const link =
    'See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses'
  reject(`Unsupported parameter: '${name}'. ${where} ${link}/create.`, name, 'unsupported_parameter')
}
