import type { TextRun } from '../server/generated-text.js'
import { fieldOf } from '../server/json-value.js'
import {
  callTokens,
  type ChatAnswer,
  chatUsage,
  type Envelope,
  finishReason,
  logprobsOf,
  newEnvelope,
  type SpokenAnswer,
  type ToolCall,
} from './chat-completion.js'
import { type ChatRequest, choiceCount, shownThoughts } from './chat-request.js'

const PADDING = 'Ab3xQ9yT7mK2wZ5d'

/** What hides the length of the pieces of an answer from those who watch the wire. */
export const paddingOf = (frame: number): string => PADDING.slice(0, (frame * 7) % PADDING.length)

export type Choice = Readonly<Record<string, unknown>>

/** Writes the frames of one streamed answer: same envelope in each, `usage` and `obfuscation` keys as the caller asked. */
class ChunkWriter {
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
    const frame = this.#frames++
    const padding = this.#obfuscate ? { obfuscation: paddingOf(frame) } : {}
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
      yield* thoughtChunks(request, writer, index)
    }
    const runs = indexes.map(() => answer.newRun())
    yield* interleave(runs.map((run, index) => textChunks(request, writer, { index, run, member: answer.member })))
    tokens = runs.reduce((sum, run) => sum + run.count, 0)
  }
  yield* writer.usage(chatUsage(request, tokens))
  yield writer.end()
}

function* thoughtChunks(request: ChatRequest, writer: ChunkWriter, index: number): Generator<string> {
  for (const reasoning_content of shownThoughts(request))
    yield writer.choices({ index, delta: { reasoning_content }, ...nullLogprobs(request), finish_reason: null })
}

function* textChunks(
  request: ChatRequest,
  writer: ChunkWriter,
  { index, run, member }: { readonly index: number; readonly run: TextRun; readonly member: 'content' | 'refusal' },
): Generator<string> {
  for (const piece of run) {
    yield writer.choices({ index, delta: { [member]: piece }, ...logprobsOf(request, [piece]), finish_reason: null })
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
  yield* thoughtChunks(request, writer, index)
  if (finish === 'function_call') {
    for (const { name, input } of calls) {
      yield choice({ function_call: { name, arguments: '' } }, null)
      for (const piece of halves(input)) yield choice({ function_call: { arguments: piece } }, null)
    }
    yield choice({}, finish)
    return
  }
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

export function halves(text: string): readonly string[] {
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

/** Bytes of audio in one `data` piece: 25,600 base64 characters. */
const PIECE_BYTES = 19_200
const FILLERS_PER_WORD = 2

/**
 * A spoken answer in the recorded order of section 5.1 of the chat notes: role, transcript with filler chunks between,
 * audio data, usage, and the expiry behind the usage. No chunk carries `finish_reason: "stop"`.
 */
export function* spokenChunks(
  request: ChatRequest,
  run: TextRun,
  speak: (words: string) => SpokenAnswer,
): Generator<string> {
  const writer = new ChunkWriter(request)
  const role = { index: 0, delta: { role: 'assistant', refusal: null }, finish_reason: null }
  yield writer.choices(role)
  const pieces = [...run]
  const spoken = speak(pieces.join(''))
  for (const [position, piece] of pieces.entries()) {
    const audio = position === 0 ? { id: spoken.id, transcript: piece } : { transcript: piece }
    const delta = position === 0 ? { content: null, audio } : { audio }
    yield writer.choices({ index: 0, delta, finish_reason: null })
    for (let filler = 0; filler < FILLERS_PER_WORD; filler += 1) yield writer.filler()
  }
  yield writer.choices(role)
  for (const bytes of regroup(spoken.bytes, PIECE_BYTES)) {
    const delta = { audio: { data: bytes.toString('base64') } }
    yield writer.choices({ index: 0, delta, finish_reason: null })
  }
  yield* writer.usage(chatUsage(request, run.count))
  yield writer.choices({ index: 0, delta: { audio: { expires_at: spoken.expiresAt } } })
  yield writer.end()
}

/** Regroups pieces of any size into pieces of `size` bytes, the last one shorter. */
export function* regroup(pieces: Iterable<Buffer>, size: number): Generator<Buffer> {
  let pending = Buffer.alloc(0)
  for (const piece of pieces) {
    pending = Buffer.concat([pending, piece])
    while (pending.length >= size) {
      yield pending.subarray(0, size)
      pending = pending.subarray(size)
    }
  }
  if (pending.length > 0) yield pending
}
