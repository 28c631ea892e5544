import type { ChatAnswer } from './chat-answer.js'
import { finishReason, logprobsOf, newEnvelope, wholeCall } from './chat-envelope.js'
import type { ChatRequest } from './chat-request.js'
import { callTokens, chatUsage } from './chat-usage.js'
import type { SpokenAnswer } from './spoken-answer.js'
import { choiceCount } from './token-budget.js'

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
    const calls = answer.calls.map(wholeCall)
    const message = { role: 'assistant', content: null, tool_calls: calls, refusal: null, annotations: [] }
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
      ? { role: 'assistant', content: text, refusal: null, annotations: [] }
      : { role: 'assistant', content: null, refusal: null, audio: wholeAudio(speak(text), text), annotations: [] }
  return {
    choice: { index, message, ...logprobsOf(request, pieces), finish_reason: finishReason(run) },
    tokens: run.count,
  }
}

function wholeAudio(spoken: SpokenAnswer, transcript: string): Readonly<Record<string, unknown>> {
  const data = Buffer.concat([...spoken.bytes]).toString('base64')
  return { id: spoken.id, data, expires_at: spoken.expiresAt, transcript }
}
