import { estimateTokens } from '../server/generated-text.js'
import { isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { checkItem } from './client-events.js'
import { type Conversation, type ConversationItem, isAnswer, itemOf, wordsOf } from './conversation.js'
import { readWish, type RealtimeWish } from './fault-injection.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { formatIn, responseFacts, type SessionFacts } from './session-config.js'
import { betaResponse, gaResponse } from './session-rules.js'
import { RealtimeRejection } from './validation.js'

/** What one response is made of. */
export interface ResponseRequest {
  readonly facts: SessionFacts
  /** All the model reads. */
  readonly context: readonly ConversationItem[]
  /** The end of it: what is to be answered. */
  readonly turn: readonly ConversationItem[]
  /** Its items do not enter the conversation. */
  readonly isOutOfBand: boolean
  readonly metadata: JsonObject | null
  /** Instructions and texts of the turn, in which magic words stand. */
  readonly callerText: string
  readonly wish: RealtimeWish
}

interface ResponseSurroundings {
  readonly dialect: RealtimeDialect
  readonly session: SessionFacts
  readonly conversation: Conversation
  /** Words queued for the session. */
  readonly faultWords: string
}

/** Judges the `response` of a `response.create`; an empty object stands for none. Throws RealtimeRejection. */
export function readResponseRequest(response: unknown, surroundings: ResponseSurroundings): ResponseRequest {
  const { dialect, session, conversation, faultWords } = surroundings
  const check = dialect === 'ga' ? gaResponse : betaResponse
  const checked = check(response, 'response') as JsonObject
  const facts = responseFacts(session, dialect, checked)
  const input = checked['input'] === undefined ? undefined : readInput(listOf(checked['input']), surroundings)
  const turn = input ?? conversation.turn
  const callerText = [faultWords, facts.instructions, ...turn.map(inputTextOf)]
    .filter((words) => words !== '')
    .join(' ')
  return {
    facts,
    turn,
    context: input ?? [...conversation.items],
    isOutOfBand: checked['conversation'] === 'none',
    metadata: isObject(checked['metadata']) ? checked['metadata'] : null,
    callerText,
    wish: readWish(callerText),
  }
}

/** The words typed into an item; transcripts are not typed. */
export function inputTextOf(item: ConversationItem): string {
  const texts = objectsOf(item.fields['content']).map((part) => textOf(part['text']))
  return texts.filter((words) => words !== '').join(' ')
}

function readInput(input: readonly unknown[], surroundings: ResponseSurroundings): readonly ConversationItem[] {
  const { dialect, session, conversation } = surroundings
  return input.map((entry, index) => {
    const path = `response.input[${index}]`
    const checked = checkItem(dialect, entry, path, true)
    const id = textOf(checked['id'])
    if (checked['type'] !== 'item_reference') return itemOf(id, checked, session.inputFormat)
    const item = conversation.find(id)
    if (item !== undefined) return item
    throw new RealtimeRejection('invalid_value', `Item with id '${id}' not found in conversation.`, `${path}.id`)
  })
}

/** How a response ended, other than by the client's leaving. */
export type ResponseEnding =
  | { readonly status: 'completed' }
  | { readonly status: 'cancelled'; readonly reason: 'turn_detected' | 'client_cancelled' }
  | { readonly status: 'incomplete'; readonly reason: 'max_output_tokens' | 'content_filter' }
  | { readonly status: 'failed'; readonly error: JsonObject }

export interface ResponseProgress {
  readonly id: string
  readonly conversationId: string | null
  /** Undefined while it is in progress. */
  readonly ending?: ResponseEnding
  /** Items in the dialect's form. */
  readonly output: readonly JsonObject[]
  readonly usage: JsonObject | null
}

/** The response object of `response.created` and `response.done`. */
export function responseObject(
  dialect: RealtimeDialect,
  request: ResponseRequest,
  progress: ResponseProgress,
): JsonObject {
  const { facts, metadata } = request
  const { id, ending, output, conversationId, usage } = progress
  const head = {
    object: 'realtime.response',
    id,
    status: ending?.status ?? 'in_progress',
    status_details: statusDetails(ending),
    output,
    conversation_id: conversationId,
  }
  const format = formatIn(dialect, facts.outputFormat)
  const limit = facts.maximumOutputTokens
  if (dialect === 'ga') {
    const modalities = [facts.wantsAudio ? 'audio' : 'text']
    const audio = { output: { format, voice: facts.voice } }
    return { ...head, output_modalities: modalities, max_output_tokens: limit, audio, usage, metadata }
  }
  return {
    ...head,
    modalities: facts.wantsAudio ? ['audio', 'text'] : ['text'],
    voice: facts.voice,
    output_audio_format: format,
    temperature: facts.temperature,
    max_output_tokens: limit,
    usage,
    metadata,
  }
}

function statusDetails(ending: ResponseEnding | undefined): JsonObject | null {
  if (ending === undefined || ending.status === 'completed') return null
  const { status, ...details } = ending
  return { type: status, ...details }
}

export interface TokenCount {
  readonly text: number
  readonly audio: number
}

/** A token for every 100 ms that are heard, and for every 50 ms that are spoken. */
export const HEARD_MS_PER_TOKEN = 100
export const SPOKEN_MS_PER_TOKEN = 50

const TOKENS_PER_ITEM = 4
/** The upstream caches prompts in blocks of this many tokens. */
const CACHE_BLOCK_TOKENS = 64

/** What the model reads for a response. */
export function inputTokens({ context, facts }: ResponseRequest): TokenCount {
  const tools = facts.tools.length === 0 ? '' : JSON.stringify(facts.tools)
  const fixed = estimateTokens(facts.instructions) + estimateTokens(tools)
  return context
    .map(itemTokens)
    .reduce((sum, item) => ({ text: sum.text + item.text, audio: sum.audio + item.audio }), { text: fixed, audio: 0 })
}

/** The `usage` of a response. `previous` is the input of the response before: what of it is read again is cached. */
export function responseUsage(
  dialect: RealtimeDialect,
  input: TokenCount,
  previous: TokenCount,
  output: TokenCount,
): JsonObject {
  const cached = { text: cachedTokens(input.text, previous.text), audio: cachedTokens(input.audio, previous.audio) }
  const images = dialect === 'ga' ? { image_tokens: 0 } : {}
  const inputTotal = input.text + input.audio
  const outputTotal = output.text + output.audio
  return {
    total_tokens: inputTotal + outputTotal,
    input_tokens: inputTotal,
    output_tokens: outputTotal,
    input_token_details: {
      cached_tokens: cached.text + cached.audio,
      text_tokens: input.text,
      audio_tokens: input.audio,
      ...images,
      cached_tokens_details: { text_tokens: cached.text, audio_tokens: cached.audio, ...images },
    },
    output_token_details: { text_tokens: output.text, audio_tokens: output.audio },
  }
}

function itemTokens(item: ConversationItem): TokenCount {
  const words = isAnswer(item) || item.audio === undefined ? wordsOf(item) : inputTextOf(item)
  const msPerToken = isAnswer(item) ? SPOKEN_MS_PER_TOKEN : HEARD_MS_PER_TOKEN
  const audio = Math.ceil((item.audio?.durationMs ?? 0) / msPerToken)
  return { text: TOKENS_PER_ITEM + estimateTokens(words), audio }
}

function cachedTokens(now: number, before: number): number {
  return Math.floor(Math.min(now, before) / CACHE_BLOCK_TOKENS) * CACHE_BLOCK_TOKENS
}
