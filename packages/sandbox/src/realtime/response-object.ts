import type { JsonObject } from '../server/json-value.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import type { ResponseRequest } from './response.js'
import { formatIn } from './session-config.js'

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
