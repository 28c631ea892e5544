import type { TextRun } from '../server/generated-text.js'
import { fieldOf, type JsonObject, listOf } from '../server/json-value.js'
import { halves, paddingOf } from './chat-chunks.js'
import { callTokens, decideAnswer, logprobsOf, type ToolCall } from './chat-completion.js'
import { reasoningTokens, wordLimit } from './chat-request.js'
import { type ResponseState, responseObject, summaryOf } from './responses-object.js'
import type { ResponsesRequest } from './responses-request.js'
import { seal } from './responses-seal.js'
import { EVENTS_BEFORE_FAILURE, newId, type ResponseEvent } from './responses-wire.js'

const SUMMARY = '**Considering the request**\n\nI read what was said and choose what to answer.'

/** Makes the events of one response, each item after the other: a client builds what it shows by their order. */
export class ResponseWriter {
  readonly #obfuscate: boolean
  readonly #output: JsonObject[] = []
  #sequence = 0
  #padded = 0
  #words = 0
  #isCut = false
  #isFiltered = false

  constructor(
    private readonly request: ResponsesRequest,
    private readonly id: string,
  ) {
    this.#obfuscate = fieldOf(request.body['stream_options'], 'include_obfuscation') !== false
  }

  *events(): Generator<ResponseEvent> {
    const { background } = this.request
    yield this.#lifecycle('created', { status: background ? 'queued' : 'in_progress' })
    if (background) yield this.#lifecycle('queued', { status: 'queued' })
    yield this.#lifecycle('in_progress', { status: 'in_progress' })
    if (reasoningTokens(this.request.chat) > 0) yield* this.#reasoning()
    yield* this.#answer()
    const end: ResponseState = {
      status: this.#isCut ? 'incomplete' : 'completed',
      output: this.#output,
      words: this.#words,
      ...(this.#isFiltered ? { incompleteReason: 'content_filter' } : {}),
    }
    yield this.#lifecycle(end.status, end)
  }

  /** What a stream ends with behind its first events when the upstream fails; a writer of its own makes it. */
  *failure(): Generator<ResponseEvent> {
    const error = { code: 'server_error', message: 'The server had an error while processing your request.' }
    this.#sequence = EVENTS_BEFORE_FAILURE
    yield this.#event('error', { ...error, param: null })
    yield this.#lifecycle('failed', { status: 'failed', error })
  }

  *#answer(): Generator<ResponseEvent> {
    const { chat } = this.request
    // All that was allowed was spent on thinking.
    this.#isCut = wordLimit(chat) <= 0
    if (this.#isCut) return
    const answer = decideAnswer(chat)
    if (answer.kind === 'text') {
      yield* this.#message(answer.newRun(), answer.member === 'refusal')
      return
    }
    for (const call of answer.calls) yield* this.#call(call)
    this.#words = callTokens(answer.calls.map((call) => call.input))
  }

  *#reasoning(): Generator<ResponseEvent> {
    const { body } = this.request
    const place = { output_index: this.#output.length }
    const isSummed = summaryOf(body) !== null
    const item = { id: newId('rs'), type: 'reasoning', summary: [] }
    yield this.#event('response.output_item.added', { ...place, item })
    const part = { type: 'summary_text', text: SUMMARY }
    if (isSummed) {
      const at = { ...place, item_id: item.id, summary_index: 0 }
      yield this.#event('response.reasoning_summary_part.added', { ...at, part: { ...part, text: '' } })
      for (const delta of halves(SUMMARY)) {
        yield this.#delta('response.reasoning_summary_text.delta', { ...at, delta })
      }
      yield this.#event('response.reasoning_summary_text.done', { ...at, text: SUMMARY })
      yield this.#event('response.reasoning_summary_part.done', { ...at, part })
    }
    const isSealed = listOf(body['include']).includes('reasoning.encrypted_content')
    const sealed = isSealed ? { encrypted_content: seal() } : {}
    yield this.#itemDone({ ...item, summary: isSummed ? [part] : [], ...sealed })
  }

  *#message(run: TextRun, isRefusal: boolean): Generator<ResponseEvent> {
    const place = { output_index: this.#output.length }
    const item = { id: newId('msg'), type: 'message', status: 'in_progress', role: 'assistant', content: [] }
    yield this.#event('response.output_item.added', { ...place, item })
    const at = { ...place, item_id: item.id, content_index: 0 }
    const whole = yield* isRefusal ? this.#refusal(run, at) : this.#text(run, at)
    yield this.#event('response.content_part.done', { ...at, part: whole })
    this.#words = run.count
    this.#isFiltered = run.ended === 'filter'
    this.#isCut = run.ended === 'limit' || this.#isFiltered
    yield this.#itemDone({ ...item, status: this.#isCut ? 'incomplete' : 'completed', content: [whole] })
  }

  *#text(run: TextRun, at: JsonObject): Generator<ResponseEvent, JsonObject> {
    const part = { type: 'output_text', annotations: [], logprobs: [], text: '' }
    yield this.#event('response.content_part.added', { ...at, part })
    const pieces: string[] = []
    for (const piece of run) {
      pieces.push(piece)
      yield this.#delta('response.output_text.delta', { ...at, delta: piece, logprobs: this.#logprobs([piece]) })
    }
    const text = pieces.join('')
    const logprobs = this.#logprobs(pieces)
    yield this.#event('response.output_text.done', { ...at, text, logprobs })
    return { ...part, text, logprobs }
  }

  *#refusal(run: TextRun, at: JsonObject): Generator<ResponseEvent, JsonObject> {
    yield this.#event('response.content_part.added', { ...at, part: { type: 'refusal', refusal: '' } })
    let refusal = ''
    for (const piece of run) {
      refusal += piece
      yield this.#delta('response.refusal.delta', { ...at, delta: piece })
    }
    yield this.#event('response.refusal.done', { ...at, refusal })
    return { type: 'refusal', refusal }
  }

  *#call({ id: callId, type, name, input }: ToolCall): Generator<ResponseEvent> {
    const isFunction = type === 'function'
    const event = isFunction ? 'response.function_call_arguments' : 'response.custom_tool_call_input'
    const key = isFunction ? 'arguments' : 'input'
    const place = { output_index: this.#output.length }
    const item = {
      id: newId(isFunction ? 'fc' : 'ctc'),
      type: isFunction ? 'function_call' : 'custom_tool_call',
      status: 'in_progress',
      [key]: '',
      call_id: callId,
      name,
    }
    yield this.#event('response.output_item.added', { ...place, item })
    const at = { ...place, item_id: item.id }
    for (const delta of halves(input)) yield this.#delta(`${event}.delta`, { ...at, delta })
    yield this.#event(`${event}.done`, { ...at, [key]: input, ...(isFunction ? { name } : {}) })
    yield this.#itemDone({ ...item, status: 'completed', [key]: input })
  }

  #itemDone(item: JsonObject): ResponseEvent {
    const event = this.#event('response.output_item.done', { output_index: this.#output.length, item })
    this.#output.push(item)
    return event
  }

  #logprobs(pieces: readonly string[]): readonly unknown[] {
    return listOf(fieldOf(logprobsOf(this.request.chat, pieces)['logprobs'], 'content'))
  }

  #lifecycle(type: string, state: ResponseState): ResponseEvent {
    return this.#event(`response.${type}`, { response: responseObject(this.request, this.id, state) })
  }

  #delta(type: string, fields: JsonObject): ResponseEvent {
    return this.#event(type, this.#obfuscate ? { ...fields, obfuscation: paddingOf(this.#padded++) } : fields)
  }

  #event(type: string, fields: JsonObject): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields }
  }
}
