import { fieldOf, isBase64, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'
import { missing, object, oneOf, string, wrongType } from './chat-field-rules.js'
import type { P1Family } from './p1-models.js'

const WEB_OR_DATA_URL = /^(https?:\/\/|data:)/

/** Judges one content part of a user message (section 2 of the chat notes). Throws OpenAiRejection. */
function judgeUserPart(part: JsonObject, path: string, family: P1Family, messageIndex: number): void {
  oneOf('text', 'image_url', 'input_audio', 'refusal', 'audio', 'file')(part['type'], `${path}.type`)
  const type = textOf(part['type'])
  if (type === 'text') {
    string()(part['text'], `${path}.text`)
    return
  }
  if (part[type] === undefined) missing(`${path}.${type}`)
  object(part[type], `${path}.${type}`)
  if (type === 'image_url') judgeImage(part[type], `${path}.image_url`)
  if (type === 'input_audio') judgeAudioPart(part[type], `${path}.input_audio`, family, messageIndex)
}

function judgeImage(image: unknown, path: string): void {
  const url = fieldOf(image, 'url')
  string()(url, `${path}.url`)
  if (!WEB_OR_DATA_URL.test(textOf(url)))
    reject(`Invalid '${path}.url': expected a URL.`, `${path}.url`, 'invalid_image_url')
  const detail = fieldOf(image, 'detail')
  if (detail !== undefined) oneOf('auto', 'low', 'high', 'original')(detail, `${path}.detail`)
}

function judgeAudioPart(audio: unknown, path: string, family: P1Family, messageIndex: number): void {
  if (family !== 'audio-chat') {
    const message = `Invalid 'messages[${messageIndex}]'. Content blocks are expected to be either text or image_url type.`
    reject(message, `messages[${messageIndex}]`, 'invalid_value')
  }
  const data = fieldOf(audio, 'data')
  string()(data, `${path}.data`)
  const format = fieldOf(audio, 'format')
  if (format === undefined) missing(`${path}.format`)
  oneOf('wav', 'mp3')(format, `${path}.format`)
  const text = textOf(data)
  if (!isBase64(text) || text.length % 4 !== 0) {
    reject(
      `Invalid '${path}.data': expected base64 encoded audio without a data URL prefix.`,
      `${path}.data`,
      'invalid_value',
    )
  }
  judgeMagic(Buffer.from(text.slice(0, 16), 'base64'), textOf(format), messageIndex)
}

function judgeMagic(head: Buffer, format: string, messageIndex: number): void {
  const isWav = head.subarray(0, 4).toString('latin1') === 'RIFF'
  const isMp3 =
    head.subarray(0, 3).toString('latin1') === 'ID3' || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)
  if (format === 'wav' ? isWav : isMp3) return
  const message =
    "The data provided for 'input_audio' is not of valid " + format + ' format. Please provide valid audio.'
  reject(message, `messages[${messageIndex}]`, 'invalid_value')
}

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
    judgeCacheMark(part['prompt_cache_breakpoint'], `${partPath}.prompt_cache_breakpoint`)
    judgePart(part, partPath)
  })
}

/** Parts of every role may end what is cached. */
function judgeCacheMark(mark: unknown, path: string): void {
  if (mark === undefined || mark === null) return
  object(mark, path)
  if (fieldOf(mark, 'mode') === undefined) missing(`${path}.mode`)
  oneOf('explicit')(fieldOf(mark, 'mode'), `${path}.mode`)
}

function textPart(part: JsonObject, path: string): void {
  oneOf('text')(part['type'], `${path}.type`)
  string()(part['text'], `${path}.text`)
}

function judgeAssistant(message: JsonObject, path: string, knowsAudio: (id: string) => boolean): void {
  const { content, audio, tool_calls: calls, function_call: legacyCall, reasoning_content: thoughts } = message
  if (thoughts !== undefined && thoughts !== null) string()(thoughts, `${path}.reasoning_content`)
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
