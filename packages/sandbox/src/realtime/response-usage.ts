import type { JsonObject } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import { type ConversationItem, isAnswer, wordsOf } from './conversation-item.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { inputTextOf, type ResponseRequest } from './response.js'

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
