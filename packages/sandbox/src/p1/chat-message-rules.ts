import { isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'
import { judgeUserPart } from './content-rules.js'
import type { P1Family } from './p1-models.js'
import { missing, object, oneOf, string, wrongType } from './value-rules.js'

const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer'] as const

/** Judges `messages` (sections 2 and 3 of the chat notes). `knowsAudio` tells which spoken answers can be referred to. */
export function judgeMessages(
  messages: readonly unknown[],
  family: P1Family,
  knowsAudio: (id: string) => boolean,
): void {
  if (messages.length === 0) {
    const text = 'empty array. Expected an array with minimum length 1, but got an empty array instead.'
    reject(`Invalid 'messages': ${text}`, 'messages', 'empty_array')
  }
  messages.forEach((message, index) => {
    if (!isObject(message)) wrongType(`messages[${index}]`, 'an object', message)
    judgeMessage(message, index, family, knowsAudio)
  })
  judgeToolOrder(messages.filter(isObject))
}

function judgeMessage(message: JsonObject, index: number, family: P1Family, knowsAudio: (id: string) => boolean): void {
  const path = `messages[${index}]`
  if (message['role'] === undefined) missing(`${path}.role`)
  oneOf(...ROLES)(message['role'], `${path}.role`)
  if (message['name'] !== undefined) string(64)(message['name'], `${path}.name`)
  switch (textOf(message['role'])) {
    case 'user':
      judgeContent(message['content'], path, (part, partPath) => {
        judgeUserPart(part, partPath, family, index)
      })
      break
    case 'assistant':
      judgeAssistant(message, path, knowsAudio)
      break
    case 'tool':
      if (message['tool_call_id'] === undefined) missing(`${path}.tool_call_id`)
      string()(message['tool_call_id'], `${path}.tool_call_id`)
      judgeContent(message['content'], path, textPart)
      break
    case 'function':
      if (message['name'] === undefined) missing(`${path}.name`)
      break
    default:
      judgeContent(message['content'], path, textPart)
  }
}

function judgeContent(content: unknown, path: string, judgePart: (part: JsonObject, path: string) => void): void {
  if (typeof content === 'string') return
  if (content === undefined) missing(`${path}.content`)
  if (!Array.isArray(content)) wrongType(`${path}.content`, 'one of a string or array of objects', content)
  listOf(content).forEach((part, index) => {
    const partPath = `${path}.content[${index}]`
    if (!isObject(part)) wrongType(partPath, 'an object', part)
    if (part['type'] === undefined) missing(`${partPath}.type`)
    judgePart(part, partPath)
  })
}

function textPart(part: JsonObject, path: string): void {
  oneOf('text')(part['type'], `${path}.type`)
  string()(part['text'], `${path}.text`)
}

function judgeAssistant(message: JsonObject, path: string, knowsAudio: (id: string) => boolean): void {
  const { content, audio, tool_calls: calls, function_call: legacyCall } = message
  const mayBeEmpty = isObject(audio) || Array.isArray(calls) || isObject(legacyCall)
  const absent = content === undefined || content === null
  if (absent && !mayBeEmpty) wrongType(`${path}.content`, 'one of a string or array of objects', null)
  if (!absent) {
    judgeContent(content, path, (part, partPath) => {
      oneOf('text', 'refusal')(part['type'], `${partPath}.type`)
    })
  }
  if (isObject(audio)) {
    const id = textOf(audio['id'])
    if (!knowsAudio(id))
      reject(`Invalid '${path}.audio.id': no audio with id '${id}' exists.`, `${path}.audio.id`, 'invalid_value')
  }
  if (calls !== undefined) judgeCalls(calls, `${path}.tool_calls`)
}

function judgeCalls(calls: unknown, path: string): void {
  if (!Array.isArray(calls)) wrongType(path, 'an array of objects', calls)
  if (calls.length === 0) {
    const text = 'empty array. Expected an array with minimum length 1, but got an empty array instead.'
    reject(`Invalid '${path}': ${text}`, path, 'empty_array')
  }
  listOf(calls).forEach((call, index) => {
    const callPath = `${path}[${index}]`
    if (!isObject(call)) wrongType(callPath, 'an object', call)
    string()(call['id'], `${callPath}.id`)
    oneOf('function', 'custom')(call['type'], `${callPath}.type`)
    const kind = textOf(call['type'])
    object(call[kind], `${callPath}.${kind}`)
    const inner = call[kind] as JsonObject
    string()(inner['name'], `${callPath}.${kind}.name`)
    const input = kind === 'function' ? 'arguments' : 'input'
    string()(inner[input], `${callPath}.${kind}.${input}`)
  })
}

/** Each call must be answered by a tool message before any other role speaks. */
function judgeToolOrder(messages: readonly JsonObject[]): void {
  let open: string[] = []
  messages.forEach((message, index) => {
    if (message['role'] === 'tool') {
      const id = textOf(message['tool_call_id'])
      if (!open.includes(id)) {
        const text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        reject(`Invalid parameter: ${text}`, `messages.[${index}].role`)
      }
      open = open.filter((other) => other !== id)
      return
    }
    if (open.length > 0) unanswered(open, index)
    open = objectsOf(message['tool_calls']).map((call) => textOf(call['id']))
  })
  if (open.length > 0) unanswered(open, messages.length)
}

function unanswered(ids: readonly string[], index: number): never {
  const rule =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
  const list = `The following tool_call_ids did not have response messages: ${ids.join(', ')}`
  reject(`${rule} ${list}`, `messages.[${index}].role`)
}
