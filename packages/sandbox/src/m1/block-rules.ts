import { fieldOf, isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'
import type { M1Version } from './m1-field-rules.js'

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

type BlockRule = (block: JsonObject, path: string) => void

/** Rules by block type, and who may say them. Types missing here (server tools and newer ones) pass unjudged. */
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
  /^(search_result|server_tool_use|container_upload|mid_conv_system|\w+_tool_result|compaction|fallback)$/

/** Judges one content block (section 3.2 of the messages notes). Throws M1Rejection. */
export function judgeBlock(block: unknown, path: string, role: string, version: M1Version): void {
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
  if (block['text'] === '') reject('messages: text content blocks must be non-empty')
}

function image(block: JsonObject, path: string): void {
  const source = block['source']
  if (!isObject(source)) reject(`${path}.image.source: Field required`)
  if (source['type'] === 'base64') {
    if (!IMAGE_TYPES.includes(textOf(source['media_type']))) {
      const list = IMAGE_TYPES.map((type) => `'${type}'`).join(', ')
      reject(`${path}.image.source.base64.media_type: Input should be ${list}`)
    }
    if (!BASE64.test(textOf(source['data']))) reject(`${path}.image.source.base64.data: Input should be valid base64`)
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
  if (!/^[a-zA-Z0-9_-]+$/.test(textOf(block['id']))) {
    reject(`${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
}

function toolResult(block: JsonObject, path: string): void {
  required('tool_use_id')(block, path)
  const content = block['content']
  if (content === undefined || typeof content === 'string' || Array.isArray(content)) return
  reject(`${path}.tool_result.content: Input should be a valid list`)
}
