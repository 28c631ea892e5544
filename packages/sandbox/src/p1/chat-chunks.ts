import { fieldOf } from '../server/json-value.js'
import type { ChatAnswer, ToolCall } from './chat-answer.js'
import { type Envelope, finishReason, logprobsOf, newEnvelope } from './chat-envelope.js'
import type { ChatRequest } from './chat-request.js'
import { callTokens, chatUsage } from './chat-usage.js'
import { choiceCount } from './token-budget.js'

const PADDING = 'Ab3xQ9yT7mK2wZ5d'

export type Choice = Readonly<Record<string, unknown>>

/** Writes the frames of one streamed answer: same envelope in each, `usage` and `obfuscation` keys as the caller asked. */
export class ChunkWriter {
  readonly #envelope: Envelope
  readonly #includeUsage: boolean
  readonly #obfuscate: boolean
  #frames = 0

  constructor(request: ChatRequest) {
    this.#envelope = newEnvelope(request)
    const options = request.body['stream_options']
    this.#includeUsage = fieldOf(options, 'include_usage') === true
    this.#obfuscate = fieldOf(options, 'include_obfuscation') !== false
  }

  choices(...choices: readonly Choice[]): string {
    return this.#frame({ choices, ...(this.#includeUsage ? { usage: null } : {}) })
  }

  /** A chunk without `choices`, as audio models send them while they think. */
  filler(): string {
    return this.#frame(this.#includeUsage ? { usage: null } : {})
  }

  *usage(usage: Readonly<Record<string, unknown>>): Generator<string> {
    if (this.#includeUsage) yield this.#frame({ choices: [], usage })
  }

  end(): string {
    return 'data: [DONE]\n\n'
  }

  #frame(own: Readonly<Record<string, unknown>>): string {
    const { id, ...rest } = this.#envelope
    const { created, model, service_tier, system_fingerprint } = rest
    const length = (this.#frames++ * 7) % PADDING.length
    const padding = this.#obfuscate ? { obfuscation: PADDING.slice(0, length) } : {}
    const object = 'chat.completion.chunk'
    const chunk = { id, object, created, model, service_tier, system_fingerprint, ...own, ...padding }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }
}

/** The frames of a written answer or of tool calls (section 7 of the chat notes), lazily. */
export function* chatChunks(request: ChatRequest, answer: ChatAnswer): Generator<string> {
  const writer = new ChunkWriter(request)
  const indexes = Array.from({ length: choiceCount(request) }, (_, index) => index)
  let tokens = 0
  if (answer.kind === 'tools') {
    for (const index of indexes) {
      yield* callChunks(request, writer, index, answer.calls, answer.finishReason)
      tokens += callTokens(answer.calls.map((call) => call.input))
    }
  } else {
    for (const index of indexes) {
      const delta = { role: 'assistant', content: '', refusal: null }
      yield writer.choices({ index, delta, ...logprobsOf(request, []), finish_reason: null })
    }
    const runs = indexes.map(() => answer.newRun())
    yield* interleave(runs.map((run, index) => textChunks(request, writer, index, run)))
    tokens = runs.reduce((sum, run) => sum + run.count, 0)
  }
  yield* writer.usage(chatUsage(request, tokens))
  yield writer.end()
}

function* textChunks(
  request: ChatRequest,
  writer: ChunkWriter,
  index: number,
  run: ReturnType<Extract<ChatAnswer, { kind: 'text' }>['newRun']>,
): Generator<string> {
  for (const piece of run) {
    yield writer.choices({ index, delta: { content: piece }, ...logprobsOf(request, [piece]), finish_reason: null })
  }
  yield writer.choices({ index, delta: {}, ...nullLogprobs(request), finish_reason: finishReason(run) })
}

function* callChunks(
  request: ChatRequest,
  writer: ChunkWriter,
  index: number,
  calls: readonly ToolCall[],
  finish: string,
): Generator<string> {
  const choice = (delta: Choice, reason: string | null): string =>
    writer.choices({ index, delta, ...nullLogprobs(request), finish_reason: reason })
  yield choice({ role: 'assistant', content: null }, null)
  for (const [position, call] of calls.entries()) {
    const key = call.type === 'custom' ? 'input' : 'arguments'
    const opening = { index: position, id: call.id, type: call.type, [call.type]: { name: call.name, [key]: '' } }
    yield choice({ tool_calls: [opening] }, null)
    for (const piece of halves(call.input)) {
      yield choice({ tool_calls: [{ index: position, [call.type]: { [key]: piece } }] }, null)
    }
  }
  yield choice({}, finish)
}

function nullLogprobs(request: ChatRequest): Choice {
  return request.family === 'audio-chat' ? {} : { logprobs: null }
}

function halves(text: string): readonly string[] {
  const middle = Math.floor(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}

function* interleave(generators: readonly Generator<string>[]): Generator<string> {
  let running = [...generators]
  while (running.length > 0) {
    const still: Generator<string>[] = []
    for (const generator of running) {
      const next = generator.next()
      if (next.done === true) continue
      yield next.value
      still.push(generator)
    }
    running = still
  }
}
