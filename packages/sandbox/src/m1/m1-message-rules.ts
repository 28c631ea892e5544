import { fieldOf, isBase64, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'
import { isSystemMessageField } from './m1-beta-rules.js'
import type { M1Terms, M1Version } from './m1-field-rules.js'
import type { M1Model } from './m1-models.js'

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

type BlockRule = (block: JsonObject, path: string) => void

/** Rules by block type, and who may say them. Types missing here (server tools and newer ones) are not validated. */
const RULES: Readonly<Record<string, { readonly roles: readonly string[]; readonly judge: BlockRule }>> = {
  text: { roles: ['user', 'assistant', 'system'], judge: text },
  image: { roles: ['user'], judge: image },
  document: { roles: ['user', 'assistant'], judge: document },
  tool_use: { roles: ['assistant'], judge: toolUse },
  tool_result: { roles: ['user'], judge: toolResult },
  thinking: { roles: ['assistant'], judge: required('thinking', 'signature') },
  redacted_thinking: { roles: ['assistant'], judge: required('data') },
}
const NEWER_TYPES =
  /^(search_result|\w+_tool_(use|result|listing)|container_upload|mid_conv_system|tool_(addition|removal)|compaction|fallback)$/

/** Judges one content block (section 3.2 of the messages notes). Throws M1Rejection. */
function judgeBlock(block: unknown, path: string, role: string, version: M1Version): void {
  if (!isObject(block)) reject(`${path}: Input should be a valid dictionary`)
  const type = textOf(block['type'])
  if (type === '') reject(`${path}.type: Field required`)
  const rule = Object.hasOwn(RULES, type) ? RULES[type] : undefined
  if (rule === undefined) {
    if (NEWER_TYPES.test(type)) return
    reject(`${path}: Input tag '${type}' found using 'type' does not match any of the expected tags`)
  }
  if (!rule.roles.includes(role)) reject(`${path}: \`${type}\` blocks are not permitted in ${role} messages`)
  if (version === '2026-10-21') judgeNewVersion(block, type, path, role)
  rule.judge(block, path)
}

function judgeNewVersion(block: JsonObject, type: string, path: string, role: string): void {
  if (type === 'document' && role === 'assistant')
    reject(`${path}: \`document\` blocks are not permitted in assistant messages`)
  if (type === 'text' && role === 'user' && listOf(block['citations']).length > 0) {
    reject(`${path}.text.citations: citations are not permitted in user messages`)
  }
}

function required(...names: readonly string[]): BlockRule {
  return (block, path) => {
    for (const name of names) {
      if (block[name] === undefined) reject(`${path}.${textOf(block['type'])}.${name}: Field required`)
      if (typeof block[name] !== 'string')
        reject(`${path}.${textOf(block['type'])}.${name}: Input should be a valid string`)
    }
  }
}

function text(block: JsonObject, path: string): void {
  required('text')(block, path)
  judgeWords(textOf(block['text']))
}

function judgeWords(words: string): void {
  if (words === '') reject('messages: text content blocks must be non-empty')
  if (words.trim() === '') reject('messages: text content blocks must contain non-whitespace text')
}

function image(block: JsonObject, path: string): void {
  const source = block['source']
  if (!isObject(source)) reject(`${path}.image.source: Field required`)
  if (source['type'] === 'base64') {
    if (!IMAGE_TYPES.includes(textOf(source['media_type']))) {
      const list = IMAGE_TYPES.map((type) => `'${type}'`).join(', ')
      reject(`${path}.image.source.base64.media_type: Input should be ${list}`)
    }
    if (!isBase64(textOf(source['data']))) reject(`${path}.image.source.base64.data: Input should be valid base64`)
  } else if (source['type'] === 'url') {
    if (!/^https?:\/\//.test(textOf(source['url']))) reject(`${path}.image.source.url.url: Input should be a valid URL`)
  } else if (source['type'] !== 'file') {
    reject(`${path}.image.source: Input tag '${textOf(source['type'])}' does not match any of the expected tags`)
  }
}

function document(block: JsonObject, path: string): void {
  const type = textOf(fieldOf(block['source'], 'type'))
  if (['base64', 'text', 'url', 'content', 'file'].includes(type)) return
  reject(`${path}.document.source: Input tag '${type}' does not match any of the expected tags`)
}

function toolUse(block: JsonObject, path: string): void {
  required('id', 'name')(block, path)
  if (!isObject(block['input'])) reject(`${path}.tool_use.input: Input should be a valid dictionary`)
  if (textOf(block['name']).length > 200) reject(`${path}.tool_use.name: String should have at most 200 characters`)
  if (!/^[a-zA-Z0-9_-]+$/.test(textOf(block['id']))) {
    reject(`${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
}

/** What a result may hold, each with the rules that it has elsewhere; newer types are not validated. */
const RESULT_RULES: Readonly<Record<string, BlockRule | undefined>> = {
  text: required('text'),
  image,
  document,
  search_result: undefined,
  tool_reference: required('tool_name'),
  browser_state: undefined,
}

function toolResult(block: JsonObject, path: string): void {
  required('tool_use_id')(block, path)
  const { content } = block
  if (content === undefined || typeof content === 'string') return
  const place = `${path}.tool_result.content`
  if (!Array.isArray(content)) reject(`${place}: Input should be a valid list`)
  listOf(content).forEach((part, index) => {
    judgeResultPart(part, `${place}.${index}`)
  })
  if (block['is_error'] !== true || objectsOf(content).every((part) => part['type'] === 'text')) return
  reject(`${path}.tool_result: all content must be type "text" if "is_error" is true`)
}

function judgeResultPart(part: unknown, path: string): void {
  if (!isObject(part)) reject(`${path}: Input should be a valid dictionary`)
  const type = textOf(part['type'])
  if (type === '') reject(`${path}.type: Field required`)
  if (!Object.hasOwn(RESULT_RULES, type)) {
    const expected = Object.keys(RESULT_RULES).map((name) => `'${name}'`)
    const tags = `does not match any of the expected tags: ${expected.join(', ')}`
    reject(`${path}: Input tag '${type}' found using 'type' ${tags}`)
  }
  RESULT_RULES[type]?.(part, path)
}

const MAX_MESSAGES = 100_000
const MAX_CACHE_MARKS = 4

/** Judges `messages` (sections 3.1 to 3.3 of the messages notes). Throws M1Rejection. */
export function judgeMessages(body: JsonObject, terms: M1Terms, model: M1Model): void {
  const messages = listOf(body['messages'])
  if (messages.length === 0) reject('messages: at least one message is required')
  if (messages.length > MAX_MESSAGES) reject(`messages: at most ${MAX_MESSAGES} messages are allowed`)
  messages.forEach((message, index) => {
    if (!isObject(message)) reject(`messages.${index}: Input should be a valid dictionary`)
    judgeMessage(message, index, terms, model)
  })
  const typed = messages.filter(isObject)
  if (typed[0]?.['role'] !== 'user') reject('messages: first message must use the "user" role')
  if (typed.at(-1)?.['role'] === 'assistant' && !model.classic) {
    reject('This model does not support assistant message prefill. The conversation must end with a user message.')
  }
  judgeCallIds(typed)
  judgeToolOrder(typed)
  judgeCacheMarks(body)
}

function judgeMessage(message: JsonObject, index: number, { version, betas }: M1Terms, model: M1Model): void {
  const path = `messages.${index}`
  const { role, content } = message
  for (const name of ['role', 'content']) if (message[name] === undefined) reject(`${path}.${name}: Field required`)
  const extra = Object.keys(message).find(
    (name) => name !== 'role' && name !== 'content' && !(role === 'system' && isSystemMessageField(name, betas)),
  )
  if (extra !== undefined) reject(`${path}.${extra}: Extra inputs are not permitted`)
  if (role === 'system' && model.classic) {
    const place = 'The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
    reject(`messages: Unexpected role "system". ${place}`)
  }
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    reject(`messages: Unexpected role ${JSON.stringify(role)}. Allowed roles are "user" or "assistant".`)
  }
  if (content === '') reject(`messages.${index}: all messages must have non-empty content`)
  if (typeof content === 'string') {
    judgeWords(content)
    return
  }
  if (!Array.isArray(content)) reject(`${path}.content: Input should be a valid list`)
  listOf(content).forEach((block, position) => {
    judgeBlock(block, `${path}.content.${position}`, role, version)
  })
}

/** No two calls of a conversation may have one id. */
function judgeCallIds(messages: readonly JsonObject[]): void {
  const ids = new Set<string>()
  messages.forEach((message, index) => {
    objectsOf(message['content']).forEach((block, position) => {
      if (block['type'] !== 'tool_use') return
      const id = textOf(block['id'])
      if (ids.has(id)) reject(`messages.${index}.content.${position}: \`tool_use\` ids must be unique`)
      ids.add(id)
    })
  })
}

/** Each tool_use needs its tool_result in the next message, before any other block there. */
function judgeToolOrder(messages: readonly JsonObject[]): void {
  let open: string[] = []
  messages.forEach((message, index) => {
    const blocks = objectsOf(message['content'])
    const results = blocks
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => textOf(block['tool_use_id']))
    results.forEach((id) => {
      if (open.includes(id)) return
      const rule = 'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
      const position = blocks.findIndex((block) => block['tool_use_id'] === id)
      const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`
      reject(`messages.${index}.content.${position}: ${found} ${rule}`)
    })
    const unanswered = open.filter((id) => !results.includes(id))
    if (unanswered.length > 0) missingResults(index - 1, unanswered)
    const firstOther = blocks.findIndex((block) => block['type'] !== 'tool_result')
    const lastResult = blocks.findLastIndex((block) => block['type'] === 'tool_result')
    if (firstOther >= 0 && firstOther < lastResult) missingResults(index - 1, open)
    const calls = message['role'] === 'assistant' ? blocks.filter((block) => block['type'] === 'tool_use') : []
    open = calls.map((block) => textOf(block['id']))
  })
  if (open.length > 0) missingResults(messages.length - 1, open)
}

function missingResults(index: number, ids: readonly string[]): never {
  const found = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}.`
  const rule = 'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
  reject(`messages.${index}: ${found} ${rule}`)
}

function judgeCacheMarks(body: JsonObject): void {
  const marks = cacheMarks(body)
  if (marks.length > MAX_CACHE_MARKS) {
    reject(`A maximum of ${MAX_CACHE_MARKS} blocks with cache_control may be provided. Found ${marks.length}.`)
  }
  for (const mark of marks) {
    if (fieldOf(mark, 'type') !== 'ephemeral') reject("cache_control.type: Input should be 'ephemeral'")
    const ttl = fieldOf(mark, 'ttl')
    if (ttl !== undefined && ttl !== '5m' && ttl !== '1h')
      reject("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
  }
}

/** Every `cache_control` of the request, in order of tools, system, messages and the top level. */
export function cacheMarks(body: JsonObject): readonly unknown[] {
  const blocks = objectsOf(body['messages']).flatMap((message) => objectsOf(message['content']))
  return [...objectsOf(body['tools']), ...objectsOf(body['system']), ...blocks, body]
    .map((carrier) => carrier['cache_control'])
    .filter((mark) => mark !== undefined && mark !== null)
}
