import { isRecord } from '../../../core/validation-rules.js'
import type { Verdicts } from '../../verdicts.js'
import { dropUnknown, invalidShape, isAbsent, type Members, objectAt, optionalListAt, textAt } from '../members.js'
import { dropped, elsewhere, type FieldRule, type FieldTable, refused, refusedUnless } from '../field-table.js'
import { SERVICE_TIERS } from '../to-messages/request-fields.js'

/** Nothing is made here but verdicts: `request.ts` says as what a field stands in the upstream's request. */
type Rule = FieldRule<{ readonly verdicts: Verdicts }>

const LEAVE_OUT = 'Leave it out.'
const isZero = (value: unknown): boolean => value === 0

const STREAM_OPTIONS: ReadonlySet<string> = new Set(['include_usage', 'include_obfuscation'])

const streamOptions: Rule = (value, { verdicts }, path) => {
  const options = objectAt(value, path)
  dropUnknown(options, STREAM_OPTIONS, path, verdicts)
  // Chunks are not padded: false is what happens anyway.
  if (options['include_obfuscation'] === true) verdicts.drop(`${path}.include_obfuscation`)
}

const temperature: Rule = (value, { verdicts }, path) => {
  if (Number(value) > 1) verdicts.refuse(path, 'Send at most 1.')
}

const FORMAT: ReadonlySet<string> = new Set(['type', 'json_schema'])

const responseFormat: Rule = (value, { verdicts }, path) => {
  const format = objectAt(value, path)
  const { type } = format
  dropUnknown(format, FORMAT, path, verdicts)
  if (type === 'text') return
  if (type !== 'json_schema') verdicts.refuse(`${path}.type`, 'Send json_schema.')
  const schemaPath = `${path}.json_schema`
  const members = objectAt(format['json_schema'], schemaPath)
  if (!isRecord(members['schema'])) verdicts.refuse(`${schemaPath}.schema`, 'Send a schema.')
  dropUnknown(members, FORMAT_MEMBERS, schemaPath, verdicts)
}

/** The name has no meaning beside the schema, and upstreams always keep to it. */
const FORMAT_MEMBERS: ReadonlySet<string> = new Set(['name', 'schema', 'strict'])

const isTextAlone = (value: unknown): boolean => Array.isArray(value) && value.every((item) => item === 'text')

export const CHAT_FIELDS: FieldTable<{ readonly verdicts: Verdicts }> = {
  messages: elsewhere,
  model: elsewhere,
  audio: refused('Ask for text.'),
  frequency_penalty: refusedUnless(isZero, LEAVE_OUT),
  function_call: elsewhere,
  functions: elsewhere,
  logit_bias: refusedUnless((value) => isRecord(value) && Object.keys(value).length === 0, LEAVE_OUT),
  logprobs: refusedUnless((value) => value === false, LEAVE_OUT),
  max_completion_tokens: elsewhere,
  max_tokens: elsewhere,
  metadata: dropped,
  modalities: refusedUnless(isTextAlone, 'Ask for text.'),
  moderation: refused(LEAVE_OUT),
  n: refusedUnless((value) => value === 1, 'Ask for one choice.'),
  parallel_tool_calls: elsewhere,
  prediction: dropped,
  presence_penalty: refusedUnless(isZero, LEAVE_OUT),
  prompt_cache_key: dropped,
  prompt_cache_options: dropped,
  prompt_cache_retention: dropped,
  reasoning_effort: elsewhere,
  response_format: responseFormat,
  safety_identifier: elsewhere,
  seed: dropped,
  service_tier: refusedUnless((value) => SERVICE_TIERS.has(value), 'Send auto or default.'),
  stop: elsewhere,
  store: (value, { verdicts }, name) => {
    if (value !== false) verdicts.drop(name)
  },
  stream: elsewhere,
  stream_options: streamOptions,
  temperature,
  tool_choice: elsewhere,
  tools: elsewhere,
  top_logprobs: refusedUnless(isZero, LEAVE_OUT),
  top_p: elsewhere,
  user: elsewhere,
  verbosity: dropped,
  web_search_options: refused(LEAVE_OUT),
}

/** The upstream needs a maximum; the caller's newer name wins. */
export function maximumTokens(body: Members, byDefault: number, verdicts: Verdicts): number {
  const { max_completion_tokens: maximum, max_tokens: older } = body
  if (isAbsent(maximum) && isAbsent(older)) {
    verdicts.approximate('max_completion_tokens', 'Send max_completion_tokens')
    return byDefault
  }
  const value = maximum ?? older
  if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value
  throw invalidShape(isAbsent(maximum) ? 'max_tokens' : 'max_completion_tokens', 'an integer of at least 1')
}

/** Upstreams refuse stop sequences of white space, and dropping one would make the answer longer. */
export function stopSequences(stop: unknown, verdicts: Verdicts): readonly string[] {
  const list = typeof stop === 'string' ? [stop] : optionalListAt(stop, 'stop')
  return list.map((value, index) => {
    const path = typeof stop === 'string' ? 'stop' : `stop[${index}]`
    const text = textAt(value, path)
    return text.trim() === '' ? verdicts.refuse(path, 'Send a sequence that is not white space alone.') : text
  })
}
