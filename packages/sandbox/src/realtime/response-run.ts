import { answerPieces, exampleOf, argumentsWord, TextRun } from '../server/generated-text.js'
import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'
import type { ConversationItem } from './conversation.js'
import { endAsWished, sendOddFrames } from './fault-injection.js'
import { CallWriter, MessageWriter, type OutputPlace, type OutputWriter } from './response-output.js'
import {
  inputTextOf,
  type ResponseEnding,
  responseObject,
  type ResponseRequest,
  responseUsage,
  type TokenCount,
} from './response.js'
import type { EventSender } from './server-events.js'

type PlannedOutput =
  | { readonly kind: 'message'; readonly words: TextRun }
  | { readonly kind: 'call'; readonly name: string; readonly input: string }

/** Decides what the model says: calls when tools are offered and asked for, otherwise words. */
function planResponse(request: ResponseRequest): readonly PlannedOutput[] {
  const calls = wantsCalls(request) ? plannedCalls(request) : []
  if (calls.length === 0) return [message(request, answerWords(request.turn))]
  if (!request.wish.words.has('mixed')) return calls
  return [message(request, 'Let me look that up for you, it will not take long.'), ...calls]
}

/** Something about the input that a test can predict: lengths and checksums of audio, texts as they are. */
export function answerWords(turn: readonly ConversationItem[]): string {
  const answers = turn.map(answerTo).filter((words) => words !== '')
  return answers.length === 0 ? 'You said nothing.' : answers.join(' ')
}

function answerTo(item: ConversationItem): string {
  if (item.fields['type'] === 'function_call_output') return `The tool answered: ${textOf(item.fields['output'])}`
  if (item.fields['role'] === 'system') return ''
  const said = inputTextOf(item)
  const words = said === '' ? [] : [`You said: ${said}`]
  if (item.audio !== undefined) {
    const { durationMs, format, checksum } = item.audio
    words.push(`I heard ${Math.round(durationMs)} ms of ${format} audio with checksum ${checksum}.`)
  }
  return words.join(' ')
}

/** A word of the answer counts as one token towards the limit. */
function message(request: ResponseRequest, words: string): PlannedOutput {
  const limit = request.facts.maximumOutputTokens
  const pieces = answerPieces(request.callerText, words)
  return { kind: 'message', words: new TextRun(pieces, limit === 'inf' ? Number.POSITIVE_INFINITY : limit, []) }
}

/** Tools that are offered are called, as in chat, unless the turn brings what one of them has answered. */
const wantsCalls = ({ facts, turn }: ResponseRequest): boolean =>
  facts.toolChoice !== 'none' && !turn.some((item) => item.fields['type'] === 'function_call_output')

function plannedCalls({ facts, callerText }: ResponseRequest): readonly PlannedOutput[] {
  const functions = facts.tools.filter((tool) => tool['type'] === 'function')
  const forced = textOf(fieldOf(facts.toolChoice, 'name'))
  const named = namedTools(functions, callerText)
  const chosen = named.length > 0 ? named : functions.slice(0, 1)
  const usable = forced === '' ? chosen : functions.filter((tool) => tool['name'] === forced)
  return usable.map((tool, index) => {
    const verbatim = index === 0 ? argumentsWord(callerText) : undefined
    const parameters = tool['parameters']
    const input = verbatim ?? JSON.stringify(parameters === undefined ? {} : exampleOf(parameters))
    return { kind: 'call', name: textOf(tool['name']), input }
  })
}

function namedTools(tools: readonly JsonObject[], text: string): readonly JsonObject[] {
  return tools.filter((tool) => text.includes(textOf(tool['name'])))
}

/** Deltas before a fault that strikes in the middle. */
const DELTAS_BEFORE_FAULT = 2

export interface ResponseOptions {
  readonly request: ResponseRequest
  readonly enter: OutputPlace['enter']
  readonly conversationId: string | null
  readonly paceMs: number
  /** The response fails before it says anything. */
  readonly failure: ResponseEnding | undefined
  readonly input: TokenCount
  readonly previousInput: TokenCount
  /** Called just before `response.done` is sent: from then on the next response may begin. */
  readonly onDone: () => void
}

const NOTHING: TokenCount = { text: 0, audio: 0 }

type CancelReason = 'turn_detected' | 'client_cancelled'

/** One response from `response.created` to `response.done`. */
export class ResponseRun {
  readonly id: string
  readonly #writers: OutputWriter[] = []
  readonly #cancelled: Promise<void>
  #resolveCancelled!: () => void
  #cancelReason: CancelReason | undefined
  #deltas = 0

  constructor(
    private readonly sender: EventSender,
    private readonly options: ResponseOptions,
  ) {
    this.id = sender.newId('resp')
    this.#cancelled = new Promise((resolve) => (this.#resolveCancelled = resolve))
  }

  get isCancelled(): boolean {
    return this.#cancelReason !== undefined
  }

  cancel(reason: CancelReason): void {
    this.#cancelReason ??= reason
    this.#resolveCancelled()
  }

  /** Resolves when `response.done` was sent or never will be. */
  async run(): Promise<void> {
    const { wish } = this.options.request
    if (wish.words.has('hang')) {
      await Promise.race([this.sender.session.closed, this.#cancelled])
      this.options.onDone()
      return
    }
    await this.sender.send('response.created', { response: this.#object(undefined) })
    await sendOddFrames(this.sender, wish)
    const ending = this.options.failure ?? (await this.#speak(planResponse(this.options.request)))
    if (ending !== undefined) await this.#finish(ending)
    else this.sender.record.noteServed(this.#usage)
  }

  /** Returns undefined when the session ended first. */
  async #speak(outputs: readonly PlannedOutput[]): Promise<ResponseEnding | undefined> {
    const interleaved = this.options.request.wish.words.has('mixed')
    const waiting = [...outputs]
    let open: OutputWriter[] = []
    while (open.length + waiting.length > 0) {
      if (open.length === 0 || interleaved) open.push(...(await this.#begin(waiting.shift())))
      for (const writer of open) {
        const ending = await this.#interruption(this.#deltas >= DELTAS_BEFORE_FAULT)
        if (ending !== 'none') return this.#breakOff(open, ending)
        if (await this.#advance(writer)) continue
        open = open.filter((other) => other !== writer)
        await writer.end(writer.endedByLimit ? 'incomplete' : 'completed')
      }
    }
    const ending = await this.#interruption(true)
    if (ending !== 'none') return ending
    const cutShort = this.#writers.some((writer) => writer.endedByLimit)
    return cutShort ? { status: 'incomplete', reason: 'max_output_tokens' } : { status: 'completed' }
  }

  async #begin(output: PlannedOutput | undefined): Promise<readonly OutputWriter[]> {
    if (output === undefined) return []
    const { request, enter } = this.options
    const place = { responseId: this.id, outputIndex: this.#writers.length, enter }
    const writer =
      output.kind === 'call'
        ? new CallWriter(this.sender, place, output)
        : new MessageWriter(this.sender, place, output.words, request.facts, request.wish.floodBytes)
    this.#writers.push(writer)
    await writer.begin()
    return [writer]
  }

  async #advance(writer: OutputWriter): Promise<boolean> {
    const { paceMs } = this.options
    if (paceMs > 0) await Promise.race([this.sender.session.waitOpen(paceMs), this.#cancelled])
    if (this.isCancelled) return true
    this.#deltas += 1
    return writer.next()
  }

  async #breakOff(
    open: readonly OutputWriter[],
    ending: ResponseEnding | undefined,
  ): Promise<ResponseEnding | undefined> {
    if (ending !== undefined) for (const writer of open) await writer.end('incomplete')
    return ending
  }

  /** Why the response ends here: undefined when the session is over, `none` when it goes on. */
  async #interruption(faultsStrike: boolean): Promise<ResponseEnding | undefined | 'none'> {
    const { session } = this.sender
    const { wish } = this.options.request
    if (this.#isCutOff()) return undefined
    if (faultsStrike) {
      if (wish.words.has('incomplete')) return { status: 'incomplete', reason: 'content_filter' }
      if (wish.words.has('stall')) await Promise.race([session.closed, this.#cancelled])
      else if (await endAsWished(this.sender, wish)) await session.closed
      if (this.#isCutOff()) return undefined
    }
    return this.#cancelReason === undefined ? 'none' : { status: 'cancelled', reason: this.#cancelReason }
  }

  #isCutOff(): boolean {
    return this.sender.session.end !== undefined
  }

  async #finish(ending: ResponseEnding): Promise<void> {
    this.options.onDone()
    await this.sender.send('response.done', { response: this.#object(ending) })
    await this.sender.send('rate_limits.updated', { rate_limits: this.#rateLimits() })
  }

  #object(ending: ResponseEnding | undefined): Readonly<Record<string, unknown>> {
    const { request, conversationId } = this.options
    const isCounted = ending !== undefined && ending.status !== 'failed'
    return responseObject(this.sender.dialect, request, {
      id: this.id,
      conversationId,
      ...(ending === undefined ? {} : { ending }),
      output: this.sender.items(this.#writers.map((writer) => writer.item.fields)),
      usage: isCounted ? this.#usage : null,
    })
  }

  /** As far as the response has come. */
  get #usage(): JsonObject {
    const { input, previousInput } = this.options
    const output = this.#writers
      .map((writer) => writer.tokens)
      .reduce((sum, tokens) => ({ text: sum.text + tokens.text, audio: sum.audio + tokens.audio }), NOTHING)
    return responseUsage(this.sender.dialect, input, previousInput, output)
  }

  #rateLimits(): readonly object[] {
    const spent = this.options.input.text + this.options.input.audio
    const limit = 15_000_000
    const tokens = { name: 'tokens', limit, remaining: limit - spent, reset_seconds: 0.002 }
    if (this.sender.dialect === 'ga') return [tokens]
    return [{ name: 'requests', limit: 1000, remaining: 999, reset_seconds: 60 }, tokens]
  }
}
