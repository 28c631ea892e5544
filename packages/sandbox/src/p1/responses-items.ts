import { isObject, type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { OpenAiRejection, reject } from '../server/openai-errors.js'
import { array, missing, nullable, object, oneOf, string, type ValueRule, wrongType } from './chat-field-rules.js'
import { anything, listOfRule, shape } from './responses-field-rules.js'
import { isSealed } from './responses-seal.js'
import type { ResponseStore } from './responses-store.js'

const status = nullable(oneOf('in_progress', 'completed', 'incomplete'))
const breakpoint = nullable(shape({ mode: oneOf('explicit') }, 'mode'))
const WEB_OR_DATA_URL = /^(https?:\/\/|data:)/

const imageUrl: ValueRule = (value, path) => {
  string()(value, path)
  if (WEB_OR_DATA_URL.test(textOf(value))) return
  reject(`Invalid '${path}'. Expected a valid URL, but got a value with an invalid format.`, path, 'invalid_value')
}

/** One of these fields must be there. */
function needsOneOf(rule: ValueRule, ...names: readonly string[]): ValueRule {
  return (value, path) => {
    rule(value, path)
    if (!names.some((name) => isObject(value) && value[name] != null)) missing(`${path}.${names[0] ?? ''}`)
  }
}

const PARTS: Readonly<Record<string, ValueRule>> = {
  input_text: shape({ type: anything, text: string(), prompt_cache_breakpoint: breakpoint }, 'text'),
  input_image: needsOneOf(
    shape({
      type: anything,
      image_url: nullable(imageUrl),
      file_id: nullable(string()),
      detail: nullable(oneOf('low', 'high', 'auto', 'original')),
      prompt_cache_breakpoint: breakpoint,
    }),
    'image_url',
    'file_id',
  ),
  input_file: needsOneOf(
    shape({
      type: anything,
      file_data: nullable(string()),
      file_id: nullable(string()),
      file_url: nullable(string()),
      filename: nullable(string()),
      detail: oneOf('auto', 'low', 'high'),
      prompt_cache_breakpoint: breakpoint,
    }),
    'file_data',
    'file_id',
    'file_url',
  ),
  output_text: shape({ type: anything, text: string(), annotations: array, logprobs: nullable(array) }, 'text'),
  refusal: shape({ type: anything, refusal: string() }, 'refusal'),
}

function content(...types: readonly string[]): ValueRule {
  return (value, path) => {
    if (typeof value === 'string') return
    if (!Array.isArray(value)) wrongType(path, 'one of an array of objects or string', value)
    listOfRule((part, partPath) => {
      if (!isObject(part)) wrongType(partPath, 'an object', part)
      if (part['type'] === undefined) missing(`${partPath}.type`)
      oneOf(...types)(part['type'], `${partPath}.type`)
      PARTS[textOf(part['type'])]?.(part, partPath)
    })(value, path)
  }
}

const INPUT_CONTENT = content('input_text', 'input_image', 'input_file')
const OUTPUT_CONTENT = content('output_text', 'refusal')

function idWith(prefix: string): ValueRule {
  return (value, path) => {
    string(64)(value, path)
    if (textOf(value).startsWith(prefix)) return
    const expected = `Expected an ID that begins with '${prefix}'.`
    reject(`Invalid '${path}': '${textOf(value)}'. ${expected}`, path, 'invalid_value')
  }
}

const callId: ValueRule = (value, path) => {
  string(64)(value, path)
  if (value !== '') return
  const expected = 'Expected a string with minimum length 1, but got an empty string instead.'
  reject(`Invalid '${path}': empty string. ${expected}`, path, 'empty_string')
}

const message: ValueRule = (value, path) => {
  const role = isObject(value) ? value['role'] : undefined
  if (role === undefined) missing(`${path}.role`)
  oneOf('assistant', 'system', 'developer', 'user')(role, `${path}.role`)
  const ofRole = {
    content: role === 'assistant' ? OUTPUT_CONTENT : INPUT_CONTENT,
    phase: nullable(oneOf('commentary', 'final_answer')),
  }
  shape({ type: anything, id: nullable(idWith('msg')), role: anything, status, ...ofRole }, 'content')(value, path)
}

const CALL = { type: anything, call_id: callId, name: string(), caller: nullable(object), namespace: string(), status }
const OUTPUT = {
  type: anything,
  id: nullable(string()),
  call_id: callId,
  output: INPUT_CONTENT,
  caller: nullable(object),
}

const ITEMS: Readonly<Record<string, ValueRule>> = {
  message,
  function_call: shape({ ...CALL, id: nullable(idWith('fc')), arguments: string() }, 'call_id', 'name', 'arguments'),
  function_call_output: shape({ ...OUTPUT, status }, 'call_id', 'output'),
  custom_tool_call: shape({ ...CALL, id: nullable(idWith('ctc')), input: string() }, 'call_id', 'name', 'input'),
  custom_tool_call_output: shape({ ...OUTPUT, status }, 'call_id', 'output'),
  reasoning: shape(
    {
      type: anything,
      id: nullable(idWith('rs')),
      summary: listOfRule(shape({ type: oneOf('summary_text'), text: string() }, 'type', 'text')),
      content: nullable(listOfRule(shape({ type: oneOf('reasoning_text'), text: string() }, 'type', 'text'))),
      encrypted_content: nullable(sealed),
      status,
    },
    'summary',
  ),
  item_reference: shape({ type: anything, id: string() }, 'id'),
}

function sealed(value: unknown, path: string): void {
  string()(value, path)
  const text = textOf(value)
  if (isSealed(text)) return
  const shown = `${text.slice(0, 4)}...${text.slice(-4)}`
  const reason = 'Encrypted content could not be decrypted or parsed.'
  reject(`The encrypted content ${shown} could not be verified. Reason: ${reason}`, null, 'invalid_encrypted_content')
}

/** Items of tools that the upstream runs by itself: they are taken as they are. */
const HOSTED_ITEMS = [
  'file_search_call',
  'computer_call',
  'computer_call_output',
  'web_search_call',
  'tool_search_call',
  'tool_search_output',
  'additional_tools',
  'compaction',
  'compaction_trigger',
  'image_generation_call',
  'code_interpreter_call',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'program',
  'program_output',
]

/** Judges each item by itself and gives it its type where the caller left it out. Throws OpenAiRejection. */
export function judgeItems(input: unknown): readonly JsonObject[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (!Array.isArray(input)) wrongType('input', 'one of a string or array of input items', input)
  return input.map((item: unknown, index) => {
    const path = `input[${index}]`
    if (!isObject(item)) wrongType(path, 'an object', item)
    const type = item['type'] ?? guessedType(item)
    if (type === undefined) missing(`${path}.type`)
    oneOf(...Object.keys(ITEMS), ...HOSTED_ITEMS)(type, `${path}.type`)
    ITEMS[textOf(type)]?.(item, path)
    return { ...item, type }
  })
}

function guessedType(item: JsonObject): string | undefined {
  if (item['role'] !== undefined) return 'message'
  return typeof item['id'] === 'string' ? 'item_reference' : undefined
}

const isCall = (item: JsonObject): boolean => item['type'] === 'function_call' || item['type'] === 'custom_tool_call'
const isOutput = (item: JsonObject): boolean => /^(function|custom_tool)_call_output$/.test(textOf(item['type']))
const spoken = (item: JsonObject): string => (textOf(item['type']).startsWith('custom') ? 'custom tool' : 'function')

/** Judges a conversation as a whole: every call has its output, every output its call before it, and no item is there twice. */
export function judgePairs(items: readonly JsonObject[]): void {
  const calls = new Map<unknown, JsonObject>()
  const answered = new Set<unknown>()
  const ids = new Set<unknown>()
  for (const item of items) {
    const { id, call_id: call } = item
    if (typeof id === 'string' && ids.has(id)) {
      reject(`Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`, 'input')
    }
    ids.add(id)
    if (isCall(item)) calls.set(call, item)
    if (!isOutput(item)) continue
    if (!calls.has(call)) {
      const kind = spoken(item)
      reject(`No tool call found for ${kind} call output with call_id ${textOf(call)}.`, 'input')
    }
    answered.add(call)
  }
  const open = [...calls.values()].find((item) => !answered.has(item['call_id']))
  if (open !== undefined) reject(`No tool output found for ${spoken(open)} call ${textOf(open['call_id'])}.`, 'input')
}

/** Judges reasoning against its neighbours: it is sent back with what followed it, and what followed with it. */
export function judgeReasoning(
  items: readonly JsonObject[],
  context: readonly JsonObject[],
  known: ResponseStore,
): void {
  const present = new Set([...context, ...items].map((item) => item['id']))
  items.forEach((item, index) => {
    const id = textOf(item['id'])
    const kind = `Item '${id}' of type '${textOf(item['type'])}' was provided without its required`
    if (item['type'] === 'reasoning' && !followsReasoning(items[index + 1])) reject(`${kind} following item.`, 'input')
    const reasoning = id === '' ? undefined : known.reasoningOf(id)
    if (reasoning !== undefined && !present.has(reasoning)) {
      reject(`${kind} 'reasoning' item: '${reasoning}'.`, 'input')
    }
  })
}

function followsReasoning(item: JsonObject | undefined): boolean {
  if (item === undefined) return false
  if (item['type'] === 'message') return item['role'] === 'assistant'
  return !isOutput(item)
}

/** Puts the stored items in place of the references, and refuses reasoning of which nothing is known. */
export function resolveReferences(
  items: readonly JsonObject[],
  known: ResponseStore,
  isStored: boolean,
): readonly JsonObject[] {
  return items.map((item) => {
    const id = textOf(item['id'])
    const isEmptyReasoning = item['type'] === 'reasoning' && id !== '' && item['encrypted_content'] == null
    if (item['type'] !== 'item_reference' && !isEmptyReasoning) return item
    const found = known.item(id)
    if (found !== undefined) return found
    const reason = 'Items are not persisted when `store` is set to false. Try again with `store` set to true, or'
    const hint = isStored ? '' : ` ${reason} remove this item from your input.`
    throw new OpenAiRejection(404, `Item with id '${id}' not found.${hint}`, { param: 'input' })
  })
}

/** The items as chat writes its messages: answers are decided, and words counted, by its rules. */
export function chatMessages(instructions: unknown, items: readonly JsonObject[]): readonly JsonObject[] {
  const first = typeof instructions === 'string' ? [{ role: 'developer', content: instructions }] : []
  return [...first, ...items.flatMap(chatMessage)]
}

function chatMessage(item: JsonObject): readonly JsonObject[] {
  if (item['type'] === 'message') return [{ role: item['role'], content: item['content'] }]
  if (isOutput(item)) return [{ role: 'tool', content: item['output'] }]
  if (isCall(item)) return [{ role: 'assistant', content: textOf(item['arguments'] ?? item['input']) }]
  const shown = objectsOf(item['summary'])
  return shown.length > 0 ? [{ role: 'assistant', content: shown }] : []
}
