import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'
import { judgeFields, missing, object, oneOf, quotedList, string, wrongType } from './chat-field-rules.js'
import { judgeMessages } from './chat-message-rules.js'
import { chatTraits } from './chat-models.js'
import { judgeModelLimits, judgeResponseSchema } from './chat-model-rules.js'
import { contentText, lastUserText } from './chat-text.js'
import { chatFamily, type P1Family } from './p1-models.js'
import { strictFault } from './strict-schemas.js'

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/

/** Judges `tools` and `tool_choice` (section 3 of the chat notes). Throws OpenAiRejection. */
function judgeTools(body: JsonObject): void {
  listOf(body['tools']).forEach((tool, index) => {
    judgeTool(tool, `tools[${index}]`)
  })
  if (body['tool_choice'] !== undefined) judgeToolChoice(body)
}

export function toolName(tool: JsonObject): string {
  return textOf(fieldOf(tool[textOf(tool['type'])], 'name'))
}

function judgeTool(tool: unknown, path: string): void {
  if (!isObject(tool)) wrongType(path, 'an object', tool)
  if (tool['type'] === undefined) missing(`${path}.type`)
  oneOf('function', 'custom')(tool['type'], `${path}.type`)
  const kind = textOf(tool['type'])
  const inner = tool[kind]
  if (inner === undefined) missing(`${path}.${kind}`)
  object(inner, `${path}.${kind}`)
  const name = judgeToolName(fieldOf(inner, 'name'), `${path}.${kind}.name`)
  if (kind === 'function') judgeParameters(inner as JsonObject, name, `${path}.function.parameters`)
  else judgeCustomFormat(fieldOf(inner, 'format'), `${path}.custom.format`)
}

export function judgeToolName(name: unknown, path: string): string {
  if (name === undefined) missing(path)
  if (typeof name === 'string' && TOOL_NAME.test(name)) return name
  const expected = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
  reject(`Invalid '${path}': string does not match pattern. ${expected}`, path, 'invalid_value')
}

/** What a custom tool takes: free text, or text of a grammar. */
function judgeCustomFormat(format: unknown, path: string): void {
  if (format === undefined) return
  object(format, path)
  oneOf('text', 'grammar')(fieldOf(format, 'type'), `${path}.type`)
  if (fieldOf(format, 'type') !== 'grammar') return
  const grammar = fieldOf(format, 'grammar')
  if (grammar === undefined) missing(`${path}.grammar`)
  judgeGrammar(grammar, `${path}.grammar`)
}

export function judgeGrammar(grammar: unknown, path: string): void {
  string()(fieldOf(grammar, 'definition'), `${path}.definition`)
  oneOf('lark', 'regex')(fieldOf(grammar, 'syntax'), `${path}.syntax`)
}

export function judgeParameters(inner: JsonObject, name: string, path: string): void {
  const schema = inner['parameters']
  if (schema === undefined) return
  const type = fieldOf(schema, 'type')
  if (type !== 'object') {
    badSchema(
      name,
      path,
      `schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type ?? null)}'.`,
    )
  }
  if (inner['strict'] !== true) return
  const fault = strictFault(schema)
  if (fault !== undefined) badSchema(name, path, fault)
}

function badSchema(name: string, path: string, reason: string): never {
  reject(`Invalid schema for function '${name}': ${reason}`, path, 'invalid_function_parameters')
}

function judgeToolChoice(body: JsonObject): void {
  const choice = body['tool_choice']
  const tools = objectsOf(body['tools'])
  if (typeof choice === 'string') oneOf('none', 'auto', 'required')(choice, 'tool_choice')
  else if (!isObject(choice)) wrongType('tool_choice', 'one of a string or object', choice)
  if (tools.length === 0 && choice !== 'none') {
    reject("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
  }
  if (!isObject(choice)) return
  oneOf('function', 'custom', 'allowed_tools')(choice['type'], 'tool_choice.type')
  if (choice['type'] === 'allowed_tools') {
    judgeAllowedTools(choice['allowed_tools'], tools)
    return
  }
  const name = toolName(choice)
  if (tools.some((tool) => toolName(tool) === name)) return
  reject(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice')
}

function judgeAllowedTools(allowed: unknown, tools: readonly JsonObject[]): void {
  const path = 'tool_choice.allowed_tools'
  if (allowed === undefined) missing(path)
  object(allowed, path)
  oneOf('auto', 'required')(fieldOf(allowed, 'mode'), `${path}.mode`)
  const listed = fieldOf(allowed, 'tools')
  if (!Array.isArray(listed)) wrongType(`${path}.tools`, 'an array of objects', listed)
  const unknown = objectsOf(listed)
    .map(toolName)
    .find((name) => !tools.some((tool) => toolName(tool) === name))
  if (unknown !== undefined) reject(`Tool choice '${unknown}' not found in 'tools' parameter.`, 'tool_choice')
}

const AUDIO_FORMATS = ['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16'] as const

export type ChatAudioFormat = (typeof AUDIO_FORMATS)[number]

/** A request that was found good. */
export interface ChatRequest {
  readonly body: JsonObject
  readonly model: string
  readonly family: P1Family
  readonly messages: readonly JsonObject[]
  readonly stream: boolean
  /** Set when the answer is to be spoken. */
  readonly audioFormat: ChatAudioFormat | undefined
  /** What the last user message says. */
  readonly callerText: string
}

/** Judges a request as strictly as the upstream. Throws OpenAiRejection. */
export function judgeChatRequest(
  body: JsonObject,
  options: { acceptUnknownFields: boolean; knowsAudio: (id: string) => boolean },
): ChatRequest {
  const model = body['model']
  if (model === undefined || model === '') reject('you must provide a model parameter')
  judgeFields(body, options.acceptUnknownFields)
  if (body['messages'] === undefined) missing('messages')
  const family = chatFamily(textOf(model))
  judgeModelLimits(body, textOf(model), family)
  judgeMessages(listOf(body['messages']), family, options.knowsAudio)
  judgeTools(body)
  const audioFormat = judgeAudioOutput(body, family)
  judgeJsonMode(body)
  judgeResponseSchema(body)
  return {
    body,
    model: textOf(model),
    family,
    messages: objectsOf(body['messages']),
    stream: body['stream'] === true,
    audioFormat,
    callerText: lastUserText(body),
  }
}

function judgeAudioOutput(body: JsonObject, family: P1Family): ChatAudioFormat | undefined {
  const wantsAudio = listOf(body['modalities']).includes('audio')
  if (wantsAudio && family !== 'audio-chat') {
    const text = "Unsupported value: 'modalities[0]' does not support 'audio' with this model."
    reject(text, 'modalities', 'unsupported_value')
  }
  if (family === 'audio-chat' && !wantsAudio && !hasAudioInput(body)) {
    const message = 'This model requires that either input content or output modality contain audio.'
    reject(message, 'model', 'invalid_value')
  }
  const audio = body['audio']
  if (!wantsAudio) return undefined
  if (!isObject(audio)) missing('audio')
  return judgeAudioParameters(audio, body['stream'] === true)
}

function judgeAudioParameters(audio: JsonObject, stream: boolean): ChatAudioFormat {
  if (audio['voice'] === undefined) missing('audio.voice')
  if (audio['format'] === undefined) missing('audio.format')
  if (isObject(audio['voice'])) string()(audio['voice']['id'], 'audio.voice.id')
  else string()(audio['voice'], 'audio.voice')
  object(audio, 'audio')
  oneOf(...AUDIO_FORMATS)(audio['format'], 'audio.format')
  const format = audio['format'] as ChatAudioFormat
  if (stream && format !== 'pcm16') {
    const supported = `Supported values are: ${quotedList(['pcm16'], 'and')}.`
    const message = `Unsupported value: 'audio.format' does not support '${format}' when stream=true. ${supported}`
    reject(message, 'audio.format', 'unsupported_value')
  }
  return format
}

function hasAudioInput(body: JsonObject): boolean {
  return objectsOf(body['messages']).some(
    (message) =>
      isObject(message['audio']) || objectsOf(message['content']).some((part) => part['type'] === 'input_audio'),
  )
}

function judgeJsonMode(body: JsonObject): void {
  const format = body['response_format']
  if (!isObject(format) || format['type'] !== 'json_object') return
  if (objectsOf(body['messages']).some((message) => /json/i.test(contentText(message['content'])))) return
  const rule = "'messages' must contain the word 'json' in some form"
  reject(`${rule}, to use 'response_format' of type 'json_object'.`, 'messages')
}

/** What a reasoning model thinks before each choice: in blocks of 64 tokens, as the real ones count them. */
const TOKENS_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 64,
  low: 128,
  medium: 256,
  high: 512,
  xhigh: 1024,
  max: 2048,
}

type TokenSettings = Pick<ChatRequest, 'body' | 'family' | 'model' | 'callerText'>

/** What the model thinks before each choice, in tokens; empty where it does not show it. */
export function shownThoughts({ body, model, callerText }: TokenSettings): readonly string[] {
  if (chatTraits(model).showsThoughts !== true) return []
  const thought = `The user says: ${callerText} Let me think what to do.`
  return (thought.match(/\s*\S+/g) ?? []).slice(0, tokenLimit(body))
}

/** Reasoning tokens before each choice: those shown, or as many as `reasoning_effort` requests and none without it. */
export function reasoningTokens(settings: TokenSettings): number {
  const { body, family } = settings
  if (family !== 'reasoning-chat') return shownThoughts(settings).length
  return Math.min(TOKENS_BY_EFFORT[textOf(body['reasoning_effort'])] ?? 0, tokenLimit(body))
}

/** Tokens left for the words of each choice: its thoughts and its words share one limit. */
export function wordLimit(settings: TokenSettings): number {
  return tokenLimit(settings.body) - reasoningTokens(settings)
}

export function choiceCount({ body }: Pick<ChatRequest, 'body'>): number {
  return typeof body['n'] === 'number' ? body['n'] : 1
}

function tokenLimit(body: ChatRequest['body']): number {
  const limit = body['max_completion_tokens'] ?? body['max_tokens']
  return typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY
}
