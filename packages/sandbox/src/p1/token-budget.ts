import { textOf } from '../server/json-value.js'
import type { ChatRequest } from './chat-request.js'

/** What a reasoning model thinks before each choice: in blocks of 64 tokens, as the real ones count them. */
const TOKENS_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 64,
  low: 128,
  medium: 256,
  high: 512,
  xhigh: 1024,
  max: 2048,
}

type Terms = Pick<ChatRequest, 'body' | 'family'>

/** Tokens of thought before each choice, which nobody is shown: as many as `reasoning_effort` asks for, none without it. */
export function reasoningTokens({ body, family }: Terms): number {
  if (family !== 'reasoning-chat') return 0
  return Math.min(TOKENS_BY_EFFORT[textOf(body['reasoning_effort'])] ?? 0, tokenLimit(body))
}

/** Tokens left for the words of each choice: its thoughts and its words share one limit. */
export function wordLimit(terms: Terms): number {
  return tokenLimit(terms.body) - reasoningTokens(terms)
}

export function choiceCount({ body }: Pick<ChatRequest, 'body'>): number {
  return typeof body['n'] === 'number' ? body['n'] : 1
}

function tokenLimit(body: ChatRequest['body']): number {
  const limit = body['max_completion_tokens'] ?? body['max_tokens']
  return typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY
}
