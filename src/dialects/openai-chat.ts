import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody, type JsonEdits } from '../core/json-body.js'
import { afterSpace, beforeSpace, JSON_BYTES } from '../core/json-spans.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { firstFrameEnd, jsonOf, lastFrameEnd } from '../core/sse.js'
import { DeltaCounter, tokensOf } from '../core/token-counter.js'
import { RelayedUsage, reportedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import type { UpstreamClient } from '../upstream/upstream-client.js'
import { estimatedResponse, eventStreamResponse, type HeaderAllowList } from '../upstream/upstream-response.js'
import { CHAT_EVENTS, type ChatFields, type OpenAIAttempt, sendOpenAIRequest } from './openai-wire.js'

const { COLON, COMMA, OPEN_BRACE } = JSON_BYTES

/** Text members of a message, in any chat dialect. */
const TEXTS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const

/** Estimates the usage of a whole response whose upstream reports none; lazily. */
export class ResponseEstimate {
  constructor(private readonly body: Buffer) {}

  /** Estimated tokens of all choices: texts, tool calls and transcripts. 0 for anything but a chat completion. */
  get count(): number {
    try {
      return messagesIn(JSON.parse(this.body.toString())).reduce((sum, message) => sum + tokensIn(message), 0)
    } catch {
      // Invalid, or nested too deeply to be serialized.
      return 0
    }
  }
}

function messagesIn(answer: unknown): readonly Record<string, unknown>[] {
  const choices = isRecord(answer) ? answer['choices'] : undefined
  if (!Array.isArray(choices)) return []
  return choices
    .map((choice: unknown) => (isRecord(choice) ? choice['message'] : undefined))
    .filter((message) => isRecord(message))
}

function tokensIn(message: Record<string, unknown>): number {
  const { tool_calls: calls, audio } = message
  const texts = [...TEXTS.map((name) => message[name]), isRecord(audio) ? audio['transcript'] : undefined]
  const words = texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? tokensOf(text) : 0), 0)
  return words + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

/** A rule of thumb of the vendors. */
const TOKENS_PER_MESSAGE = 4
const TOKENS_OF_RESPONSE_HEAD = 3

interface Prompt {
  readonly messages: readonly unknown[]
  readonly tools?: unknown
}

/**
 * Estimated prompt tokens of a chat completion: four ASCII characters, or one character of any other
 * script, per token; a constant for each message and for the response's head. Only texts and tools: the cost of an image or a
 * recording cannot be seen in its bytes.
 */
export function estimatePromptTokens({ messages, tools }: Prompt): number {
  let tokens = TOKENS_OF_RESPONSE_HEAD + (tools == null ? 0 : tokensOf(JSON.stringify(tools)))
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + (isRecord(message) ? promptTokensIn(message) : 0)
  return tokens
}

function promptTokensIn({ content, tool_calls: calls }: Record<string, unknown>): number {
  return tokensOf(textOf(content)) + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/**
 * Estimated usage of a chat completion until its upstream reports it, at the very end: a token for each
 * chunk of the response that has arrived, and the estimated prompt tokens, computed only when needed.
 */
export class ChatUsageEstimator implements UsageEstimator {
  constructor(
    private readonly request: Pick<ChatFields, 'messages' | 'tools'>,
    private readonly deltas?: Pick<FrameCounter, 'count'>,
  ) {}

  estimate(): Usage {
    const prompt = estimatePromptTokens(this.request)
    const units = this.deltas === undefined ? { prompt_tokens: prompt } : tokens(prompt, this.deltas.count)
    return { units, estimated: true }
  }

  /** For a stream its chunks, which are counted anyway. A whole response with reported usage is not estimated. */
  countedUnits(): Units | undefined {
    return this.deltas === undefined ? undefined : { completion_tokens: this.deltas.count }
  }
}

const tokens = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

const KEY_TEXT = '"usage"'
const KEY = Buffer.from(KEY_TEXT)
/** OpenAI's spelling in every chunk. */
const NULL_USAGE = /,"usage":null/g
const USAGE_WINDOW_BYTES = 8192
const USAGE_OBJECTS = [Buffer.from('"usage":{'), Buffer.from('"usage": {')]
const NULL = Buffer.from('null')

/**
 * Reads the usage in a chat stream. The gateway requests usage itself; for a caller who did not, the filter removes the
 * `"usage":null` of each chunk and the extra chunk at the end. Only bytes around the key are inspected; the one frame with
 * usage is parsed. Text of a model cannot be mistaken for the key: its quotes are escaped.
 */
export class ChatUsageFilter {
  constructor(
    private readonly clientRequestedUsage: boolean,
    private readonly onUsage: (usage: Usage) => void,
  ) {}

  readonly filter = (frames: Buffer): Buffer => {
    if (this.clientRequestedUsage) {
      // Usage comes with the last frames; the bytes are relayed whether it is found or not.
      const end = frames.subarray(-USAGE_WINDOW_BYTES)
      return USAGE_OBJECTS.some((mark) => end.includes(mark))
        ? this.readUsage(frames, frames.length - end.length)
        : frames
    }
    if (!frames.includes(KEY)) return frames
    // As latin1 text, byte for byte: a global pattern without alternatives is removed in one native pass. What is left
    // is written back into the same buffer, which has no other reader: an allocation per stream costs more than this.
    const plain = frames.toString('latin1').replace(NULL_USAGE, '')
    const bytes = frames.subarray(0, frames.write(plain, 'latin1'))
    const key = plain.indexOf(KEY_TEXT)
    return key === -1 ? bytes : this.filterOtherSpellings(bytes, key)
  }

  /** Cases that the usual spelling does not cover: usage itself, spaces, the key as the first member. */
  private filterOtherSpellings(frames: Buffer, firstKey: number): Buffer {
    const pieces: Buffer[] = []
    let position = 0
    let hasUsage = false
    for (let key = firstKey; key !== -1; key = frames.indexOf(KEY, key + KEY.length)) {
      const value = valueStart(frames, key + KEY.length)
      if (frames[value] === OPEN_BRACE) hasUsage = true
      if (!isNull(frames, value)) continue
      const cut = cutWithComma(frames, key, value + NULL.length)
      pieces.push(frames.subarray(position, cut.start))
      position = cut.end
    }
    const rest = withOnly([...pieces, frames.subarray(position)], frames)
    return hasUsage ? this.readUsage(rest, position === 0 ? firstKey : 0) : rest
  }

  private readUsage(frames: Buffer, from: number): Buffer {
    const kept: Buffer[] = []
    let position = 0
    for (
      let key = frames.indexOf(KEY, from);
      key !== -1;
      key = frames.indexOf(KEY, Math.max(position, key + KEY.length))
    ) {
      const start = lastFrameEnd(frames.subarray(0, key))
      const end = firstFrameEnd(frames, key)
      const chunk = jsonOf(frames.subarray(start, end))
      const usage = reportedUsage(chunk?.['usage'])
      if (usage === undefined) continue
      this.onUsage(usage)
      const isExtra = Array.isArray(chunk?.['choices']) && chunk['choices'].length === 0
      if (!isExtra || this.clientRequestedUsage) continue
      kept.push(frames.subarray(position, start))
      position = end
    }
    return withOnly([...kept, frames.subarray(position)], frames)
  }
}

/** Joins the pieces inside the buffer they are parts of: an allocation per stream costs more than moving them. */
function withOnly(pieces: readonly Buffer[], frames: Buffer): Buffer {
  let length = 0
  for (const piece of pieces) {
    const start = piece.byteOffset - frames.byteOffset
    frames.copyWithin(length, start, start + piece.length)
    length += piece.length
  }
  return frames.subarray(0, length)
}

function valueStart(frames: Buffer, afterKey: number): number {
  const colon = afterSpace(frames, afterKey)
  return frames[colon] === COLON ? afterSpace(frames, colon + 1) : colon
}

const isNull = (frames: Buffer, start: number): boolean => frames.subarray(start, start + NULL.length).equals(NULL)

/** Cuts a member with the comma before it, or with the one after it if it is the first. */
function cutWithComma(frames: Buffer, keyStart: number, valueEnd: number): { start: number; end: number } {
  const before = beforeSpace(frames, keyStart) - 1
  if (frames[before] === COMMA) return { start: before, end: valueEnd }
  const after = afterSpace(frames, valueEnd)
  return { start: keyStart, end: frames[after] === COMMA ? after + 1 : valueEnd }
}

interface ChatUpstream {
  readonly path: `/${string}`
  /** Names and values in turn; complete, as none of the client's headers are forwarded. */
  readonly headers: readonly string[]
  readonly responseHeaders: HeaderAllowList
}

/** A chat completion at an upstream of this dialect: bytes in, bytes out. Rejects with the upstream's `GatewayError`. */
export async function completeChat(
  client: UpstreamClient,
  upstream: ChatUpstream,
  body: JsonBody<ChatFields>,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const { path, headers, responseHeaders } = upstream
  const request = { method: 'POST', path, headers, body: body.edited(editsFor(body, context)) } as const
  const response = await sendOpenAIRequest(client, request, context)
  if (body.fields.stream === true) return await streamOf(response, upstream, body.fields, context)
  const usage = new RelayedUsage()
  const answer = await estimatedResponse(response, responseHeaders, usage)
  if (usage.reportedUsage === undefined) usage.estimator = usageEstimatorOf(answer, body.fields)
  return answer
}

function streamOf(
  response: UpstreamResponse,
  { responseHeaders }: ChatUpstream,
  fields: ChatFields,
  context: OpenAIAttempt,
): Promise<ProviderResponse> {
  const deltas = new DeltaCounter()
  const usage = new RelayedUsage(new ChatUsageEstimator(fields, deltas))
  context.record.usage = usage
  const { filter } = new ChatUsageFilter(asksForUsage(fields), (reported) => {
    usage.reportedUsage = reported
  })
  const events = { ...eventsFor(fields), secret: context.credentials, deltas }
  return eventStreamResponse(response, responseHeaders, events, { usage, filter })
}

/** Estimator for a response without reported usage, or whose usage is still to come: audio soon exceeds the buffered size. */
const usageEstimatorOf = ({ body }: ProviderResponse, fields: ChatFields): ChatUsageEstimator =>
  new ChatUsageEstimator(fields, Buffer.isBuffer(body) ? new ResponseEstimate(body) : undefined)

/** The finish reason of one choice says nothing about the others. */
const eventsFor = ({ n }: ChatFields): SseDialect =>
  typeof n === 'number' && n > 1 ? { ...CHAT_EVENTS, completionMarks: ['data: [DONE]'] } : CHAT_EVENTS

const asksForUsage = ({ stream_options: options }: ChatFields): boolean => options?.['include_usage'] === true

/** The usage of a stream is reported only on demand, and the gateway always accounts for what it relayed. */
function editsFor(body: JsonBody<ChatFields>, { upstreamModel }: OpenAIAttempt): JsonEdits {
  const { fields } = body
  const edits: Record<string, string> = {}
  if (upstreamModel !== fields.model) edits['model'] = JSON.stringify(upstreamModel)
  if (fields.stream === true && !asksForUsage(fields)) edits['stream_options'] = optionsWithUsage(body)
  return edits
}

/** The caller's other stream options keep their spelling. */
function optionsWithUsage(body: JsonBody<ChatFields>): string {
  const given = body.fields.stream_options == null ? '{}' : (body.textOf('stream_options') ?? '{}')
  return JsonBody.parse(Buffer.from(given)).edited({ include_usage: 'true' }).toString()
}
