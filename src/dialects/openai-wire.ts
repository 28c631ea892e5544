import { type GatewayError, scrubbedJson } from '../core/errors.js'
import type { ModelFields } from '../core/json-body.js'
import type { AttemptRecord, Usage } from '../core/request-context.js'
import { framesOf, jsonOf } from '../core/sse.js'
import { reportedUsage } from '../core/usage.js'
import type { SseDialect } from '../upstream/sse-relay.js'
import type { ExchangeContext, UpstreamResponse } from '../upstream/exchange.js'
import type { UpstreamClient, UpstreamRequest, UpstreamTarget } from '../upstream/upstream-client.js'
import { parseUpstreamError, type UpstreamErrorBody } from '../upstream/upstream-error.js'

/** The fields of a chat completion that the gateway reads; all others are relayed unread. */
export interface ChatFields extends ModelFields {
  readonly messages: readonly unknown[]
  readonly tools?: readonly unknown[] | null
  /** Requested number of choices; checked by the upstream. */
  readonly n?: unknown
  readonly stream?: boolean | null
  readonly stream_options?: Readonly<Record<string, unknown>> | null
  readonly modalities?: readonly string[] | null
  readonly audio?: Readonly<Record<string, unknown>> | null
}

const ERROR_MARK = 'data: { "error"'

/** Streamed chat: LF, `[DONE]`; recorded audio streams carry no finish reason, other upstreams no `[DONE]`. */
export const CHAT_EVENTS: SseDialect = {
  completionMarks: ['data: [DONE]', '"finish_reason":"', '"finish_reason": "'],
  errorMark: ERROR_MARK,
}

/** Streamed speech: CRLF, `speech.audio.done`, then always `[DONE]`. */
export const SPEECH_EVENTS: SseDialect = {
  completionMarks: ['speech.audio.done"'],
  errorMark: ERROR_MARK,
  terminator: 'data: [DONE]\r\n\r\n',
}

/** Streamed transcription: CRLF; `[DONE]` is on the wire although published samples omit it. */
export const TRANSCRIPTION_EVENTS: SseDialect = {
  completionMarks: ['transcript.text.done"', 'data: [DONE]'],
  errorMark: ERROR_MARK,
}

/**
 * Reads the usage out of the one frame that ends an audio event stream (`speech.audio.done`, `transcript.text.done`);
 * all other frames pass unparsed, and every frame passes untouched.
 */
export class DoneUsage {
  private readonly mark: string

  constructor(
    eventType: string,
    private readonly found: (usage: Usage) => void,
  ) {
    this.mark = `${eventType}"`
  }

  readonly filter = (frames: Buffer): Buffer => {
    if (frames.includes(this.mark)) this.read(frames)
    return frames
  }

  private read(frames: Buffer): void {
    for (const frame of framesOf(frames)) {
      const usage = frame.includes(this.mark) ? reportedUsage(jsonOf(frame)?.['usage']) : undefined
      if (usage !== undefined) this.found(usage)
    }
  }
}

/** The credentials sent upstream, and whether they are the caller's. */
export interface SentCredentials {
  readonly credentials: string
  readonly callersKey: boolean
}

export interface OpenAIAttempt extends ExchangeContext, SentCredentials {
  readonly record: AttemptRecord
  readonly target: UpstreamTarget
  readonly upstreamModel: string
  /** On the performance clock. */
  readonly deadlineAtMs: number
}

/** Sends a request in this dialect; rejects with the upstream's error for any status but 200, mapped by `statusMap`. */
export async function sendOpenAIRequest(
  client: UpstreamClient,
  request: UpstreamRequest,
  attempt: OpenAIAttempt,
  statusMap: Readonly<Record<number, number>> = {},
): Promise<UpstreamResponse> {
  const response = await client.send(request, attempt.target, attempt, attempt.deadlineAtMs)
  if (response.status !== 200) throw await parseOpenAIError(response, attempt, statusMap)
  return response
}

/** Error codes for an exhausted account quota in this dialect. */
const QUOTA_CODES: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'credit_balance_exhausted',
  'billing_not_active',
])

/** The specification's audio table has no 404: an unknown model is a bad request there. */
export const AUDIO_STATUS_MAP = { 404: 400 } as const

/** Reads `{error: {message, type, param, code}}`, the body of the audio and chat dialect. */
export function parseOpenAIError(
  response: UpstreamResponse,
  { callersKey, credentials }: SentCredentials,
  statusMap: Readonly<Record<number, number>> = {},
): Promise<GatewayError> {
  return parseUpstreamError(response, { read: readBody, callersKey, secret: credentials, statusMap })
}

function readBody(body: Record<string, unknown>, text: string): UpstreamErrorBody | undefined {
  const { error } = body
  if (typeof error !== 'object' || error === null) return undefined
  const { message, code, param, type } = error as Record<string, unknown>
  if (typeof message !== 'string') return undefined
  // This dialect always has all four keys, even if the upstream omits some; siblings of `error` stay.
  const relayed = { ...body, error: { ...error, type: type ?? null, param: param ?? null, code: code ?? null } }
  const scrubbed = scrubbedJson(relayed)
  return {
    message,
    // A response without anything to hide or to add is relayed byte for byte.
    relayable: scrubbed === JSON.stringify(body) ? text : scrubbed,
    quota: QUOTA_CODES.has(String(code)) || QUOTA_CODES.has(String(type)),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof param === 'string' ? { param } : {}),
  }
}
