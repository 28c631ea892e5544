import { fieldOf, isObject, type JsonObject, objectsOf, parseJsonObject } from './json-value.js'
import type { Frame } from './response-stream.js'
import type { ServedUnits } from './served-ledger.js'
import { messagesUnits, tokenUnits } from './token-units.js'

/** Counts what of a streamed answer was written, frame by frame. */
export interface StreamTally {
  readonly note: (frame: Frame) => void
  readonly units: ServedUnits
}

/** Chat: the figures of the last chunk, or the pieces written so far behind what was asked. */
export class ChatTally implements StreamTally {
  #pieces = 0
  #units: ServedUnits | undefined

  constructor(private readonly promptTokens: number) {}

  readonly note = (frame: Frame): void => {
    const chunk = dataOf(frame)
    if (isObject(chunk?.['usage'])) this.#units = tokenUnits(chunk['usage'])
    for (const choice of objectsOf(chunk?.['choices'])) if (holdsText(choice['delta'])) this.#pieces += 1
  }

  get units(): ServedUnits {
    return this.#units ?? { promptTokens: this.promptTokens, completionTokens: this.#pieces }
  }
}

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
  const texts = ['content', 'text', 'thinking', 'partial_json'].map((name) => fieldOf(delta, name))
  return texts.some((text) => typeof text === 'string' && text !== '') || fieldOf(delta, 'tool_calls') !== undefined
}
