import { randomBytes } from 'node:crypto'
import type { TextRun } from '../server/generated-text.js'
import type { ToolCall } from './chat-answer.js'
import type { ChatRequest } from './chat-request.js'
import { resolvedModel } from './p1-models.js'

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

export function finishReason(run: TextRun): 'length' | 'stop' {
  return run.ended === 'limit' ? 'length' : 'stop'
}

/** One entry of `tool_calls` in a complete answer. */
export function wholeCall(call: ToolCall): Readonly<Record<string, unknown>> {
  return call.type === 'custom'
    ? { id: call.id, type: call.type, custom: { name: call.name, input: call.input } }
    : { id: call.id, type: call.type, function: { name: call.name, arguments: call.input } }
}

/** The `logprobs` member of a choice: absent on audio models, null unless asked for. */
export function logprobsOf(request: ChatRequest, pieces: readonly string[]): Readonly<Record<string, unknown>> {
  if (request.family === 'audio-chat') return {}
  if (request.body['logprobs'] !== true) return { logprobs: null }
  const content = pieces.map((token) => ({ token, logprob: -0.01, bytes: [...Buffer.from(token)], top_logprobs: [] }))
  return { logprobs: { content, refusal: null } }
}
