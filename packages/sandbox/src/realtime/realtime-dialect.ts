import { isObject, type JsonObject, listOf } from '../server/json-value.js'

/** `ga`: the interface since August 2025. `beta`: the one before, which the upstream switched off in May 2026. */
export type RealtimeDialect = 'ga' | 'beta'

/** What a session is for: responses of a model, or nothing but a transcript of what the client says. */
export type SessionKind = 'conversation' | 'transcription'

const BETA_EVENT_TYPES: Readonly<Record<string, string>> = {
  'conversation.item.added': 'conversation.item.created',
  'response.output_text.delta': 'response.text.delta',
  'response.output_text.done': 'response.text.done',
  'response.output_audio_transcript.delta': 'response.audio_transcript.delta',
  'response.output_audio_transcript.done': 'response.audio_transcript.done',
  'response.output_audio.delta': 'response.audio.delta',
  'response.output_audio.done': 'response.audio.done',
}

/** The name of a GA server event in a dialect; undefined when the dialect has no such event. */
export function eventTypeIn(dialect: RealtimeDialect, type: string): string | undefined {
  if (dialect === 'ga') return type
  return type === 'conversation.item.done' ? undefined : (BETA_EVENT_TYPES[type] ?? type)
}

/** The type of an assistant's content part in a dialect; `kind` is what the part holds. */
export function assistantPartType(dialect: RealtimeDialect, kind: 'text' | 'audio'): string {
  return dialect === 'ga' ? `output_${kind}` : kind
}

/** An item that is kept in GA form as a dialect shows it. */
export function itemIn(dialect: RealtimeDialect, item: JsonObject): JsonObject {
  if (dialect === 'ga') return item
  const { id, ...rest } = item
  const content = item['content'] === undefined ? {} : { content: listOf(item['content']).map(betaPart) }
  return { id, object: 'realtime.item', ...rest, ...content }
}

/** An item as a client of the beta dialect sends it, in GA form. */
export function itemFromBeta(item: JsonObject): JsonObject {
  if (item['role'] !== 'assistant') return item
  const content = listOf(item['content']).map((part) => {
    if (!isObject(part)) return part
    return part['type'] === 'text' || part['type'] === 'audio' ? { ...part, type: `output_${part['type']}` } : part
  })
  return { ...item, content }
}

function betaPart(part: unknown): unknown {
  if (!isObject(part)) return part
  if (part['type'] === 'output_text') return { ...part, type: 'text' }
  return part['type'] === 'output_audio' ? { ...part, type: 'audio' } : part
}

/** How one realtime simulator behaves. */
export interface RealtimeContext {
  readonly dialect: RealtimeDialect
  /** The only accepted key; undefined accepts every key but `bad`. */
  readonly apiKey: string | undefined
  /** What a wrong key gets: an HTTP 401, or an error event and close 3000. */
  readonly wrongKey: 'handshake' | 'event'
  /** Pause before each delta. */
  readonly paceMs: number
  readonly sessionMaximumMs: number
}
