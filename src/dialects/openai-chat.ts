import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody, type JsonEdits } from '../core/json-body.js'
import { afterSpace, beforeSpace, JSON_BYTES } from '../core/json-spans.js'
import type { Units, Usage, UsageEstimator } from '../core/request-context.js'
import { firstFrameEnd, jsonOf, lastFrameEnd } from '../core/sse.js'
import { DeltaCounter, tokensOf } from '../core/token-counter.js'
import { RelayedUsage, reportedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import type { UpstreamClient, UpstreamResponse } from '../upstream/upstream-client.js'
import { estimatedResponse, eventStreamResponse, type HeaderAllowList } from '../upstream/upstream-response.js'
import { CHAT_EVENTS, type ChatFields, type OpenAIAttempt, sendOpenAIRequest } from './openai-wire.js'

const { COLON, COMMA, OPEN_BRACE } = JSON_BYTES

/** What a message may say in words, whosever dialect of chat it is. */
const TEXTS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const

/** Counts a whole answer whose upstream does not say what it took; nothing is looked at before that is asked for. */
export class ResponseEstimate {
  constructor(private readonly body: Buffer) {}

  /** Tokens, roughly, of all choices: of their texts, tool calls and transcripts. 0 for what is no chat completion. */
  get count(): number {
    try {
      return messagesIn(JSON.parse(this.body.toString())).reduce((sum, message) => sum + tokensIn(message), 0)
    } catch {
      // Broken, or nested so deeply that it cannot be written again.
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

/** As vendors' own rules of thumb have it. */
const TOKENS_PER_MESSAGE = 4
const TOKENS_OF_RESPONSE_HEAD = 3

interface Prompt {
  readonly messages: readonly unknown[]
  readonly tools?: unknown
}

/**
 * Roughly what the request of a chat completion costs in tokens: four ASCII characters, or one character of any other
 * script, to a token; so much for each message and for the answer's head. Texts and tools alone: what an image or a
 * recording costs does not show in its bytes.
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
 * What a chat completion has used as long as its upstream has not said so, which it does last of all: a token for each
 * piece of the answer that has arrived, and what the request probably cost. The request is not looked at before that.
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

  /** Of a stream its pieces, which are counted anyway. An answer that came whole is looked at for no figure beside its own. */
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
/** As upstream writes it into every chunk. */
const USUAL_NULL = /,"usage":null/g
const FIGURES_WINDOW_BYTES = 8192
const FIGURES = [Buffer.from('"usage":{'), Buffer.from('"usage": {')]
const NULL = Buffer.from('null')

/**
 * Reads the usage that passes in a chat stream and, for a caller who did not ask for it, takes every trace of the
 * gateway's own asking away: the `"usage":null` of each chunk and the extra chunk at the end. Only bytes around the
 * key are looked at; the one frame that carries figures is parsed. Text of a model cannot be mistaken for the key:
 * its quotes are escaped.
 */
export class ChatUsageFilter {
  constructor(
    private readonly callerRequestedUsage: boolean,
    private readonly found: (usage: Usage) => void,
  ) {}

  readonly filter = (region: Buffer): Buffer => {
    if (this.callerRequestedUsage) {
      // Figures come with the last frames; the caller's bytes pass whether they are found or not.
      const end = region.subarray(-FIGURES_WINDOW_BYTES)
      return FIGURES.some((mark) => end.includes(mark)) ? this.readFigures(region, region.length - end.length) : region
    }
    if (!region.includes(KEY)) return region
    // As latin1 text, byte for byte: a global pattern without alternatives is removed in one native pass. What is left
    // goes back into the region's own memory, which has no other reader: an allocation per stream costs more than this.
    const plain = region.toString('latin1').replace(USUAL_NULL, '')
    const bytes = region.subarray(0, region.write(plain, 'latin1'))
    const key = plain.indexOf(KEY_TEXT)
    return key === -1 ? bytes : this.filterUnusual(bytes, key)
  }

  /** What the usual spelling does not cover: the figures themselves, spaces, the key in first place. */
  private filterUnusual(region: Buffer, firstKey: number): Buffer {
    const pieces: Buffer[] = []
    let position = 0
    let figures = false
    for (let key = firstKey; key !== -1; key = region.indexOf(KEY, key + KEY.length)) {
      const value = valueStart(region, key + KEY.length)
      if (region[value] === OPEN_BRACE) figures = true
      if (!isNull(region, value)) continue
      const cut = cutWithComma(region, key, value + NULL.length)
      pieces.push(region.subarray(position, cut.start))
      position = cut.end
    }
    const rest = withOnly([...pieces, region.subarray(position)], region)
    return figures ? this.readFigures(rest, position === 0 ? firstKey : 0) : rest
  }

  private readFigures(region: Buffer, from: number): Buffer {
    const kept: Buffer[] = []
    let position = 0
    for (
      let key = region.indexOf(KEY, from);
      key !== -1;
      key = region.indexOf(KEY, Math.max(position, key + KEY.length))
    ) {
      const start = lastFrameEnd(region.subarray(0, key))
      const end = firstFrameEnd(region, key)
      const chunk = jsonOf(region.subarray(start, end))
      const usage = reportedUsage(chunk?.['usage'])
      if (usage === undefined) continue
      this.found(usage)
      const isExtra = Array.isArray(chunk?.['choices']) && chunk['choices'].length === 0
      if (!isExtra || this.callerRequestedUsage) continue
      kept.push(region.subarray(position, start))
      position = end
    }
    return withOnly([...kept, region.subarray(position)], region)
  }
}

/** The pieces, in the memory of the region they are parts of: an allocation per stream costs more than moving them. */
function withOnly(pieces: readonly Buffer[], region: Buffer): Buffer {
  let length = 0
  for (const piece of pieces) {
    const start = piece.byteOffset - region.byteOffset
    region.copyWithin(length, start, start + piece.length)
    length += piece.length
  }
  return region.subarray(0, length)
}

function valueStart(region: Buffer, afterKey: number): number {
  const colon = afterSpace(region, afterKey)
  return region[colon] === COLON ? afterSpace(region, colon + 1) : colon
}

const isNull = (region: Buffer, start: number): boolean => region.subarray(start, start + NULL.length).equals(NULL)

/** The member leaves with the comma before it, or with the one behind it when it stands first. */
function cutWithComma(region: Buffer, keyStart: number, valueEnd: number): { start: number; end: number } {
  const before = beforeSpace(region, keyStart) - 1
  if (region[before] === COMMA) return { start: before, end: valueEnd }
  const after = afterSpace(region, valueEnd)
  return { start: keyStart, end: region[after] === COMMA ? after + 1 : valueEnd }
}

/** An upstream that speaks this dialect. */
interface ChatUpstream {
  readonly path: `/${string}`
  /** Names and values in turn: the whole list, as nothing of the caller's own headers travels on. */
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
  if (usage.figures === undefined) usage.estimator = usageEstimatorOf(answer, body.fields)
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
  const { filter } = new ChatUsageFilter(asksForUsage(fields), (figures) => {
    usage.figures = figures
  })
  const events = { ...eventsFor(fields), secret: context.credentials, deltas }
  return eventStreamResponse(response, responseHeaders, events, { usage, filter })
}

/** Of an answer that has not said what it took, or not yet: spoken ones soon pass the size that is held as a whole. */
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
