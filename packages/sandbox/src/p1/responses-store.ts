import { setTimeout as pause } from 'node:timers/promises'
import { type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { OpenAiRejection, reject } from '../server/openai-errors.js'
import { isLast, newId, type ResponseEvent } from './responses-wire.js'

/** Responses that are remembered; older ones are forgotten. */
const REMEMBERED_RESPONSES = 1000

/** A response that is made while its caller is away: it waits for half of its time, and is made in the other half. */
export class BackgroundRun {
  readonly #cancelled = new AbortController()
  readonly #started: Promise<void>
  /** Resolves when it is over; never rejects. */
  readonly finished: Promise<void>
  #status: 'queued' | 'in_progress' | 'over' = 'queued'

  constructor(
    private readonly events: readonly ResponseEvent[],
    durationMs: number,
    onServed: (response: JsonObject) => void,
  ) {
    this.#started = this.#enter('in_progress', durationMs / 2)
    this.finished = this.#started
      .then(() => this.#enter('over', durationMs / 2))
      .then(() => {
        if (!this.#isCancelled) onServed(this.snapshot)
      })
  }

  /** The response as it stands. */
  get snapshot(): JsonObject {
    const first = this.events[0]?.['response'] as JsonObject
    if (this.#isCancelled) return { ...first, status: 'cancelled' }
    if (this.#status !== 'over') return { ...first, status: this.#status }
    return this.events.findLast(isLast)?.['response'] as JsonObject
  }

  /** Without effect when it is over. */
  cancel(): void {
    if (this.#status !== 'over') this.#cancelled.abort()
  }

  /** The events behind this number, each when its time has come; those of a cancelled run just end. */
  async *eventsAfter(number: number): AsyncGenerator<ResponseEvent> {
    for (const event of this.events) {
      if (event.type === 'response.in_progress') await this.#started
      else if (event.type !== 'response.created' && event.type !== 'response.queued') await this.finished
      if (this.#isCancelled) return
      if (event.sequence_number > number) yield event
    }
  }

  get #isCancelled(): boolean {
    return this.#cancelled.signal.aborted
  }

  async #enter(status: 'in_progress' | 'over', afterMs: number): Promise<void> {
    // A run that is cancelled is over at once.
    await pause(afterMs, undefined, { ref: false, signal: this.#cancelled.signal }).catch(() => undefined)
    if (!this.#isCancelled) this.#status = status
  }
}

export interface StoredResponse {
  readonly response: JsonObject
  /** The items of its request, with ids. */
  readonly inputItems: readonly JsonObject[]
  /** The conversation before its output. */
  readonly context: readonly JsonObject[]
  readonly run: BackgroundRun | undefined
}

/** What is kept of a request. */
interface KeptRequest {
  readonly store: boolean
  readonly items: readonly JsonObject[]
  readonly context: readonly JsonObject[]
}

/** The responses that can be read, continued and referred to. */
export class ResponseStore {
  readonly #responses = new Map<string, StoredResponse>()

  keep(request: KeptRequest, response: JsonObject, run?: BackgroundRun): void {
    if (!request.store) return
    const inputItems = request.items.map(inputItem)
    const context = [...request.context, ...inputItems]
    this.#responses.set(textOf(response['id']), { response, inputItems, context, run })
    const [oldest] = this.#responses.keys()
    if (this.#responses.size > REMEMBERED_RESPONSES && oldest !== undefined) this.#responses.delete(oldest)
  }

  /** Throws OpenAiRejection. */
  get(id: string): StoredResponse {
    const stored = this.#responses.get(id)
    if (stored !== undefined) return { ...stored, response: stored.run?.snapshot ?? stored.response }
    throw new OpenAiRejection(404, `Response with id '${id}' not found.`)
  }

  /** Throws OpenAiRejection. */
  delete(id: string): void {
    this.get(id).run?.cancel()
    this.#responses.delete(id)
  }

  /** The items of the conversation up to the end of this response. Throws OpenAiRejection. */
  contextOf(id: string): readonly JsonObject[] {
    const stored = this.#responses.has(id) ? this.get(id) : undefined
    const isUsable = ['completed', 'incomplete'].includes(textOf(stored?.response['status']))
    if (stored !== undefined && isUsable) return [...stored.context, ...objectsOf(stored.response['output'])]
    const message = `Previous response with id '${id}' not found.`
    reject(message, 'previous_response_id', 'previous_response_not_found')
  }

  /** An item that a request or an answer had. */
  item(id: string): JsonObject | undefined {
    for (const key of this.#responses.keys()) {
      const { inputItems, response } = this.get(key)
      const found = [...inputItems, ...objectsOf(response['output'])].find((item) => item['id'] === id)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** The id of the reasoning that an item of an answer came from. */
  reasoningOf(id: string): string | undefined {
    for (const key of this.#responses.keys()) {
      const [first, ...rest] = objectsOf(this.get(key).response['output'])
      if (first?.['type'] === 'reasoning' && rest.some((item) => item['id'] === id)) return textOf(first['id'])
    }
    return undefined
  }
}

const PREFIXES: Readonly<Record<string, 'msg' | 'rs' | 'fc' | 'ctc'>> = {
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
}

/** An item as it is listed: with an id and a status, its text in parts. */
function inputItem(item: JsonObject): JsonObject {
  const { id, type, content, role, ...rest } = item
  const known = { id: id ?? newId(PREFIXES[textOf(type)] ?? 'msg'), type }
  if (type === 'reasoning') return { ...known, ...rest, ...(content === undefined ? {} : { content }) }
  if (type !== 'message') return { ...known, status: 'completed', ...rest }
  const isAnswer = role === 'assistant'
  const part = isAnswer
    ? { type: 'output_text', annotations: [], text: content }
    : { type: 'input_text', text: content }
  return { ...known, status: 'completed', ...rest, role, content: typeof content === 'string' ? [part] : content }
}
