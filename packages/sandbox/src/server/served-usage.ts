import { fieldOf, isObject, type JsonObject, objectsOf, parseJsonObject } from './json-value.js'
import type { Frame } from './response-stream.js'

/** What was served, in the units an upstream charges for. */
export type ServedUnits = Readonly<Record<string, number>>

const REMEMBERED_ANSWERS = 1000

/**
 * What a simulator has served, summed by model and answer by answer: the truth that a caller's accounts are held against. An
 * answer that was broken off counts as far as it was written.
 */
export class ServedLedger {
  readonly #sums = new Map<string, Map<string, number>>()
  readonly #answers = new Map<string, ServedUnits[]>()

  add(model: string, units: ServedUnits): void {
    const sums = this.#sums.get(model) ?? new Map<string, number>()
    this.#sums.set(model, sums)
    this.#note(model, units)
    for (const [unit, quantity] of Object.entries(units)) sums.set(unit, (sums.get(unit) ?? 0) + quantity)
  }

  /** The last thousand answers of each model, in order; units of which there was nothing are left out. */
  get answers(): Readonly<Record<string, readonly ServedUnits[]>> {
    return Object.fromEntries(this.#answers)
  }

  #note(model: string, units: ServedUnits): void {
    const answers = this.#answers.get(model) ?? []
    this.#answers.set(model, answers)
    answers.push(Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0)))
    if (answers.length > REMEMBERED_ANSWERS) answers.shift()
  }

  /** By model, then by unit; units of which there was nothing are left out. */
  get sums(): Readonly<Record<string, ServedUnits>> {
    const served = [...this.#sums].map(([model, sums]) => [
      model,
      Object.fromEntries([...sums].filter(([, quantity]) => quantity > 0)),
    ])
    return Object.fromEntries(served) as Record<string, ServedUnits>
  }
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** Each endpoint of the family has a name of its own for the details. */
const detailsOf = (usage: unknown, ...names: readonly string[]): unknown =>
  names.map((name) => fieldOf(usage, name)).find((details) => details !== undefined)

/** Tokens of the usage objects of chat (`prompt_tokens`, …) and of everything else in its family (`input_tokens`, …). */
export function tokenUnits(usage: unknown): ServedUnits {
  const input = detailsOf(usage, 'prompt_tokens_details', 'input_token_details', 'input_tokens_details')
  const output = detailsOf(usage, 'completion_tokens_details', 'output_token_details', 'output_tokens_details')
  return {
    promptTokens: count(fieldOf(usage, 'prompt_tokens') ?? fieldOf(usage, 'input_tokens')),
    completionTokens: count(fieldOf(usage, 'completion_tokens') ?? fieldOf(usage, 'output_tokens')),
    cachedTokens: count(fieldOf(input, 'cached_tokens')),
    cachedAudioTokens: count(fieldOf(fieldOf(input, 'cached_tokens_details'), 'audio_tokens')),
    audioInputTokens: count(fieldOf(input, 'audio_tokens')),
    audioOutputTokens: count(fieldOf(output, 'audio_tokens')),
    reasoningTokens: count(fieldOf(output, 'reasoning_tokens')),
  }
}

/** What a transcription reports: seconds, or tokens. */
export function transcriptUnits(usage: unknown): ServedUnits {
  const seconds = fieldOf(usage, 'seconds')
  return typeof seconds === 'number' ? { audioSeconds: seconds } : tokenUnits(usage)
}

/** Of the messages family: what is cached stands beside the input. */
export function messagesUnits(usage: unknown): ServedUnits {
  const read = count(fieldOf(usage, 'cache_read_input_tokens'))
  const written = count(fieldOf(usage, 'cache_creation_input_tokens'))
  return {
    promptTokens: count(fieldOf(usage, 'input_tokens')) + read + written,
    cachedTokens: read,
    cacheWriteTokens: written,
    cacheWriteHourTokens: count(fieldOf(fieldOf(usage, 'cache_creation'), 'ephemeral_1h_input_tokens')),
    completionTokens: count(fieldOf(usage, 'output_tokens')),
    reasoningTokens: count(fieldOf(fieldOf(usage, 'output_tokens_details'), 'thinking_tokens')),
  }
}

/** Counts what of a streamed answer was written, frame by frame. */
export interface StreamTally {
  readonly note: (frame: Frame) => void
  readonly units: ServedUnits
}

/** What one event says: the figures of the whole, and how many pieces of the answer it holds. */
type ReadPieces = (event: JsonObject) => { readonly usage: unknown; readonly pieces: number }

/** The figures of the last event, or the pieces written so far behind what was asked. */
class PieceTally implements StreamTally {
  #pieces = 0
  #units: ServedUnits | undefined

  constructor(
    private readonly promptTokens: number,
    private readonly read: ReadPieces,
  ) {}

  readonly note = (frame: Frame): void => {
    const event = dataOf(frame)
    if (event === undefined) return
    const { usage, pieces } = this.read(event)
    if (isObject(usage)) this.#units = tokenUnits(usage)
    this.#pieces += pieces
  }

  get units(): ServedUnits {
    return this.#units ?? { promptTokens: this.promptTokens, completionTokens: this.#pieces }
  }
}

/** Chat: pieces of each choice. */
export const chatTally = (promptTokens: number): StreamTally =>
  new PieceTally(promptTokens, ({ usage, choices }) => ({
    usage,
    pieces: objectsOf(choices).filter((choice) => holdsText(choice['delta'])).length,
  }))

/** Responses: a piece in each delta. */
export const responsesTally = (promptTokens: number): StreamTally =>
  new PieceTally(promptTokens, ({ response, delta }) => ({
    usage: fieldOf(response, 'usage'),
    pieces: typeof delta === 'string' ? 1 : 0,
  }))

/** Messages: the input of the first event, and the totals of the last or the pieces written so far. */
export class MessagesTally implements StreamTally {
  #pieces = 0
  #start: JsonObject = {}
  #end: JsonObject | undefined

  readonly note = (frame: Frame): void => {
    const event = dataOf(frame)
    if (event?.['type'] === 'message_start') this.#start = fieldOf(event['message'], 'usage') as JsonObject
    if (event?.['type'] === 'message_delta') this.#end = event['usage'] as JsonObject
    if (event?.['type'] === 'content_block_delta' && holdsText(event['delta'])) this.#pieces += 1
  }

  get units(): ServedUnits {
    const units = messagesUnits({ ...this.#start, ...this.#end })
    if (this.#end !== undefined) return units
    return { ...units, completionTokens: Math.max(units['completionTokens'] ?? 0, this.#pieces) }
  }
}

/** Transcripts: all of the audio, and the output of the last event or the pieces written so far. */
export class TranscriptTally implements StreamTally {
  #pieces = 0
  #isDone = false

  constructor(private readonly whole: ServedUnits) {}

  readonly note = (frame: Frame): void => {
    const event = dataOf(frame)
    if (event?.['type'] === 'transcript.text.done') this.#isDone = true
    if (event?.['type'] === 'transcript.text.delta') this.#pieces += 1
  }

  get units(): ServedUnits {
    return this.#isDone ? this.whole : { ...this.whole, completionTokens: this.#pieces }
  }
}

/** Undefined for what is no event, half a one included. */
function dataOf(frame: Frame): JsonObject | undefined {
  const data = /^data: (.*)$/m.exec(frame.toString())?.[1]
  return data === undefined ? undefined : parseJsonObject(Buffer.from(data))
}

function holdsText(delta: unknown): boolean {
  const texts = ['content', 'reasoning_content', 'text', 'thinking', 'partial_json'].map((name) => fieldOf(delta, name))
  return texts.some((text) => typeof text === 'string' && text !== '') || fieldOf(delta, 'tool_calls') !== undefined
}
