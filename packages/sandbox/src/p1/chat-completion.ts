import { randomBytes } from 'node:crypto'
import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import {
  answerPieces,
  argumentsWord,
  estimateTokens,
  exampleOf,
  hasWord,
  REFUSAL,
  TextRun,
  unfilteredWords,
} from '../server/generated-text.js'
import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import {
  type ChatAudioFormat,
  type ChatRequest,
  choiceCount,
  reasoningTokens,
  shownThoughts,
  toolName,
  wordLimit,
} from './chat-request.js'
import { contentText } from './chat-text.js'
import type { P1Context } from './p1-context.js'
import { resolvedModel } from './p1-models.js'

export interface ToolCall {
  readonly id: string
  readonly type: 'function' | 'custom'
  readonly name: string
  /** JSON text for a function, free text for a custom tool. */
  readonly input: string
}

export type ChatAnswer =
  | { readonly kind: 'text'; readonly member: 'content' | 'refusal'; readonly newRun: () => TextRun }
  | {
      readonly kind: 'tools'
      readonly calls: readonly ToolCall[]
      readonly finishReason: 'tool_calls' | 'function_call' | 'stop'
    }

/** Decides what the model says: tool calls right after a user message that offers tools, otherwise words. */
export function decideAnswer(request: ChatRequest): ChatAnswer {
  const limit = wordLimit(request)
  if (hasWord(request.callerText, 'refuse')) {
    return { kind: 'text', member: 'refusal', newRun: () => new TextRun(answerPieces('', REFUSAL), limit, []) }
  }
  const calls = toolCalls(request)
  if (calls.length > 0) {
    if (isLegacy(request.body)) return { kind: 'tools', calls, finishReason: 'function_call' }
    // A forced function has been seen to end with `stop` although it called (section 4 of the chat notes).
    const forced = fieldOf(request.body['tool_choice'], 'type') === 'function'
    return { kind: 'tools', calls, finishReason: forced ? 'stop' : 'tool_calls' }
  }
  // Pieces of an answer are made as they are taken: each choice has its own.
  const pieces = (): Iterable<string> => answerPieces(request.callerText, words(request))
  const newRun = (): TextRun => new TextRun(pieces(), limit, stops(request.body), unfilteredWords(request.callerText))
  return { kind: 'text', member: 'content', newRun }
}

/** Whether the caller knows only the older form of tools, of one call in an answer. */
const isLegacy = (body: JsonObject): boolean => objectsOf(body['functions']).length > 0

/** The tools of a request, those of the older form as today's. */
const offeredTools = ({ body }: ChatRequest): readonly JsonObject[] => [
  ...objectsOf(body['tools']),
  ...objectsOf(body['functions']).map((definition) => ({ type: 'function', function: definition })),
]

function stops(body: JsonObject): readonly string[] {
  const stop = body['stop']
  return (typeof stop === 'string' ? [stop] : listOf(stop).map(textOf)).filter((text) => text !== '')
}

function words(request: ChatRequest): string {
  const format = request.body['response_format']
  const plain = plainWords(request)
  if (fieldOf(format, 'type') === 'json_object') return JSON.stringify({ answer: plain })
  if (fieldOf(format, 'type') !== 'json_schema') return plain
  return JSON.stringify(exampleOf(fieldOf(fieldOf(format, 'json_schema'), 'schema')))
}

function plainWords(request: ChatRequest): string {
  const results = toolResults(request)
  if (results.length > 0) return `The tools answered: ${results.map(({ content }) => contentText(content)).join('; ')}`
  const said = request.callerText === '' ? 'You said nothing.' : `You said: ${request.callerText}`
  const last = request.messages.findLast((message) => message['role'] === 'user')
  const heard = objectsOf(last?.['content']).filter((part) => part['type'] === 'input_audio')
  return [said, ...heard.map((part) => heardAudio(part['input_audio']))].join(' ')
}

/** Those that no assistant has spoken after; a user may have added to them, as with pictures that no result can hold. */
function toolResults({ messages }: ChatRequest): readonly JsonObject[] {
  const lastCaller = messages.findLastIndex((message) => message['role'] === 'assistant')
  return messages.slice(lastCaller + 1).filter(({ role }) => role === 'tool' || role === 'function')
}

function heardAudio(audio: unknown): string {
  const bytes = Buffer.from(textOf(fieldOf(audio, 'data')), 'base64').length
  return `I heard ${textOf(fieldOf(audio, 'format'))} audio of ${bytes} bytes.`
}

function toolCalls(request: ChatRequest): readonly ToolCall[] {
  const choice = request.body['tool_choice'] ?? request.body['function_call']
  const isAnswered = toolResults(request).length > 0
  if (choice === 'none' || isAnswered || request.messages.at(-1)?.['role'] === 'assistant') return []
  return chosenTools(request, choice).map((tool, index) => ({
    id: `call_${randomBytes(12).toString('hex')}`,
    type: tool['type'] === 'custom' ? 'custom' : 'function',
    name: toolName(tool),
    input: toolInput(tool, index === 0 ? argumentsWord(request.callerText) : undefined),
  }))
}

/** The tools the caller's text names, or the first one; only one when parallel calls are off or a tool is forced. */
function chosenTools(request: ChatRequest, choice: unknown): readonly JsonObject[] {
  const tools = offeredTools(request)
  if (isObject(choice) && choice['type'] !== 'allowed_tools') {
    return tools.filter((tool) => toolName(tool) === toolName(choice))
  }
  const allowed = objectsOf(fieldOf(fieldOf(choice, 'allowed_tools'), 'tools')).map(toolName)
  const usable = allowed.length > 0 ? tools.filter((tool) => allowed.includes(toolName(tool))) : tools
  const named = usable.filter((tool) => request.callerText.includes(toolName(tool)))
  const chosen = named.length > 0 ? named : usable.slice(0, 1)
  const isSerial = request.body['parallel_tool_calls'] === false || isLegacy(request.body)
  return isSerial ? chosen.slice(0, 1) : chosen
}

function toolInput(tool: JsonObject, verbatim: string | undefined): string {
  if (verbatim !== undefined) return verbatim
  if (tool['type'] === 'custom') return `example ${toolName(tool)}`
  const schema = fieldOf(tool['function'], 'parameters')
  return JSON.stringify(schema === undefined ? {} : exampleOf(schema))
}

/** The keys every chunk of one answer repeats. */
export interface Envelope {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly service_tier: string
  readonly system_fingerprint: string
}

export function newEnvelope(request: ChatRequest): Envelope {
  return {
    id: `chatcmpl-${randomBytes(14).toString('base64url')}`,
    created: Math.floor(Date.now() / 1000),
    model: resolvedModel(request.model),
    service_tier: 'default',
    system_fingerprint: 'fp_58b2b3ae96',
  }
}

export function finishReason(run: TextRun): 'length' | 'stop' | 'content_filter' {
  if (run.ended === 'filter') return 'content_filter'
  return run.ended === 'limit' ? 'length' : 'stop'
}

/** One entry of `tool_calls` in a complete answer. */
function wholeCall(call: ToolCall): Readonly<Record<string, unknown>> {
  return call.type === 'custom'
    ? { id: call.id, type: call.type, custom: { name: call.name, input: call.input } }
    : { id: call.id, type: call.type, function: { name: call.name, arguments: call.input } }
}

function wholeCalls({ calls, finishReason: reason }: Extract<ChatAnswer, { kind: 'tools' }>): object {
  const [first] = calls
  if (reason !== 'function_call' || first === undefined) return { tool_calls: calls.map(wholeCall) }
  return { function_call: { name: first.name, arguments: first.input } }
}

/** The `logprobs` member of a choice: absent on audio models, null unless asked for. */
export function logprobsOf(request: ChatRequest, pieces: readonly string[]): Readonly<Record<string, unknown>> {
  if (request.family === 'audio-chat') return {}
  if (request.body['logprobs'] !== true) return { logprobs: null }
  const content = pieces.map((token) => ({ token, logprob: -0.01, bytes: [...Buffer.from(token)], top_logprobs: [] }))
  return { logprobs: { content, refusal: null } }
}

/** Bytes of base64-decoded input audio counted as one audio token. */
const AUDIO_BYTES_PER_TOKEN = 4800
/** Spoken words cost about this many audio tokens each. */
const AUDIO_TOKENS_PER_WORD = 4
const TOKENS_PER_MESSAGE = 4

/** The usage object of section 6 of the chat notes for so many tokens of words. Audio models carry more keys. */
export function chatUsage(request: ChatRequest, wordTokens: number): Readonly<Record<string, unknown>> {
  const promptText = request.messages.reduce(
    (sum, message) => sum + TOKENS_PER_MESSAGE + estimateTokens(contentText(message['content'])),
    3,
  )
  const promptAudio = request.messages
    .flatMap((message) => objectsOf(message['content']))
    .filter((part) => part['type'] === 'input_audio')
    .reduce((sum, part) => sum + audioTokens(textOf(fieldOf(part['input_audio'], 'data'))), 0)
  const spoken = request.audioFormat === undefined ? 0 : wordTokens * AUDIO_TOKENS_PER_WORD
  const isAudioModel = request.family === 'audio-chat'
  const prompt = promptText + promptAudio
  const reasoning = reasoningTokens(request) * choiceCount(request)
  const completion = reasoning + wordTokens + spoken
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: 0,
      audio_tokens: promptAudio,
      ...(isAudioModel ? { text_tokens: promptText, image_tokens: 0 } : {}),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: spoken,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      ...(isAudioModel ? { text_tokens: wordTokens } : {}),
    },
  }
}

/** Tokens of tool calls, which are not words. */
export function callTokens(inputs: readonly string[]): number {
  return inputs.reduce((sum, input) => sum + 6 + estimateTokens(input), 0)
}

function audioTokens(base64: string): number {
  return Math.ceil((base64.length * 3) / 4 / AUDIO_BYTES_PER_TOKEN)
}

/** Seconds a spoken answer can be referred to. */
const LIFETIME_S = 3600

export interface SpokenAnswer {
  readonly id: string
  /** Unix seconds. */
  readonly expiresAt: number
  readonly bytes: Iterable<Buffer>
}

/** Speaks the words and remembers the answer's id for follow-up turns. */
export function speakAnswer(context: P1Context, words: string, format: ChatAudioFormat): SpokenAnswer {
  const id = `audio_${randomBytes(16).toString('hex')}`
  const expiresAt = Math.floor(Date.now() / 1000) + LIFETIME_S
  context.audioAnswers.set(id, expiresAt)
  const bytes = synthesizeSpeech(words, { format: format === 'pcm16' ? 'pcm' : format, speed: 1 })
  return { id, expiresAt, bytes }
}

/** The complete answer of section 4 of the chat notes; `speak` is given when the answer is spoken (section 5). */
export function chatCompletion(
  request: ChatRequest,
  answer: ChatAnswer,
  speak: (words: string) => SpokenAnswer,
): Readonly<Record<string, unknown>> {
  const { id, created, model, service_tier, system_fingerprint } = newEnvelope(request)
  const parts = Array.from({ length: choiceCount(request) }, (_, index) => choice(request, answer, index, speak))
  const tokens = parts.reduce((sum, part) => sum + part.tokens, 0)
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: parts.map((part) => part.choice),
    usage: chatUsage(request, tokens),
    service_tier,
    system_fingerprint,
  }
}

function choice(
  request: ChatRequest,
  answer: ChatAnswer,
  index: number,
  speak: (words: string) => SpokenAnswer,
): { choice: Readonly<Record<string, unknown>>; tokens: number } {
  if (answer.kind === 'tools') {
    const said = { role: 'assistant', content: null, ...wholeCalls(answer), refusal: null, annotations: [] }
    const message = { ...said, ...thoughtsOf(request) }
    return {
      choice: { index, message, ...logprobsOf(request, []), finish_reason: answer.finishReason },
      tokens: callTokens(answer.calls.map((call) => call.input)),
    }
  }
  const run = answer.newRun()
  const pieces = [...run]
  const text = pieces.join('')
  const message =
    request.audioFormat === undefined
      ? {
          role: 'assistant',
          content: null,
          refusal: null,
          [answer.member]: text,
          annotations: [],
          ...thoughtsOf(request),
        }
      : { role: 'assistant', content: null, refusal: null, audio: wholeAudio(speak(text), text), annotations: [] }
  return {
    choice: { index, message, ...logprobsOf(request, pieces), finish_reason: finishReason(run) },
    tokens: run.count,
  }
}

function thoughtsOf(request: ChatRequest): Readonly<Record<string, unknown>> {
  const thoughts = shownThoughts(request)
  return thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('') }
}

function wholeAudio(spoken: SpokenAnswer, transcript: string): Readonly<Record<string, unknown>> {
  const data = Buffer.concat([...spoken.bytes]).toString('base64')
  return { id: spoken.id, data, expires_at: spoken.expiresAt, transcript }
}
