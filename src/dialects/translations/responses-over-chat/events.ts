import type { GatewayError } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation } from '../../translator.js'
import type { Members } from '../members.js'
import { ResponseEventWriter } from '../responses/event-writer.js'
import { endOfChat } from '../stop-reasons.js'
import { type AnswerContext, readCall, sealedThoughts, thoughtsIn, tierOf, usageOf } from './answer.js'
import { ArrivingCall } from './arriving-call.js'

/** Of what cannot be written yet, as a call before it is not complete. */
const MAXIMUM_HELD_CHARACTERS = 256 * 1024

interface Piece {
  readonly kind: 'reasoning' | 'text' | 'refusal'
  readonly text: string
}

/**
 * Chunks of a chat completion as events of a response. Items follow one another there, while chunks may mix them: what comes before a
 * call is complete, and does not belong to it, waits for its end.
 */
export class ChatToResponseEvents implements EventTranslation {
  private readonly writer: ResponseEventWriter
  /** All calls so far, by their index. */
  private readonly calls = new Map<number, ArrivingCall>()
  private openCall: ArrivingCall | undefined
  private waiting: (ArrivingCall | Piece)[] = []
  private heldCharacters = 0
  /** Of the open reasoning item, for its seal. */
  private thoughts = ''
  private finishReason: string | undefined
  private hasRefusal = false

  constructor(private readonly context: AnswerContext) {
    this.writer = new ResponseEventWriter(context.envelope, context.target.memory)
  }

  event(chunk: Members): string {
    const before = this.writer.begin()
    this.writer.report(usageOf(chunk), tierOf(chunk))
    const choice = Array.isArray(chunk['choices']) ? (chunk['choices'] as readonly unknown[])[0] : undefined
    if (!isRecord(choice)) return before
    if (typeof choice['finish_reason'] === 'string') this.finishReason = choice['finish_reason']
    return isRecord(choice['delta']) ? before + this.delta(choice['delta']) : before
  }

  end(): string {
    if (this.finishReason === undefined) throw malformedResponse('The upstream ended without a finish reason.')
    const end = endOfChat(this.finishReason, this.calls.size > 0, this.hasRefusal)
    if (end === 'refused') this.waiting = this.waiting.filter(({ kind }) => kind !== 'call')
    return this.advance(true) + this.writer.end(end)
  }

  failure(error: GatewayError): string {
    return this.writer.failed(error)
  }

  private delta(delta: Members): string {
    const { content, refusal, tool_calls: calls } = delta
    let frames = this.piece('reasoning', thoughtsIn(delta))
    frames += this.piece('text', content)
    frames += this.piece('refusal', refusal)
    if (Array.isArray(calls)) for (const call of calls as readonly unknown[]) frames += this.call(call)
    return frames
  }

  private piece(kind: Piece['kind'], text: unknown): string {
    if (typeof text !== 'string' || text === '') return ''
    if (kind === 'refusal') this.hasRefusal = true
    if (this.openCall === undefined && this.waiting.length === 0) return this.write({ kind, text })
    this.hold(text.length)
    this.waiting.push({ kind, text })
    return this.advance()
  }

  private call(value: unknown): string {
    const piece = readCall(value)
    const call = this.callAt(isRecord(value) ? value['index'] : undefined, piece.id)
    const text = call.add(piece)
    if (call.state === 'open') return this.writer.callDelta(text) + this.advance()
    if (call.state === 'written') {
      if (text.trim() === '') return ''
      throw malformedResponse('The upstream went on with a call that was complete.')
    }
    call.hold(text)
    this.hold(text.length)
    return this.advance()
  }

  private callAt(index: unknown, id: string | undefined): ArrivingCall {
    const place = typeof index === 'number' ? index : this.placeOf(id)
    const known = this.calls.get(place)
    if (known !== undefined && !isAnother(known, id)) return known
    const call = new ArrivingCall(place)
    this.calls.set(place, call)
    const behind = this.waiting.findIndex((other) => other.kind === 'call' && other.index > place)
    this.waiting.splice(behind === -1 ? this.waiting.length : behind, 0, call)
    return call
  }

  /** For upstreams that leave the index out: an id that is new begins a call. */
  private placeOf(id: string | undefined): number {
    const known = [...this.calls.values()].find((call) => call.id === id)
    if (known !== undefined) return known.index
    return id === undefined ? Math.max(0, this.calls.size - 1) : this.calls.size
  }

  private hold(characters: number): void {
    this.heldCharacters += characters
    if (this.heldCharacters > MAXIMUM_HELD_CHARACTERS) {
      throw malformedResponse('The upstream mixed more calls than can be translated.')
    }
  }

  /** Writes what waits, up to a call that is not complete; with `isLast`, all of it. */
  private advance(isLast = false): string {
    let frames = ''
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (this.openCall !== undefined && !this.openCall.isComplete && !isLast) break
      if (next.kind === 'call' && !next.isReady && !isLast) break
      this.waiting.shift()
      if (this.openCall !== undefined) this.openCall.state = 'written'
      this.openCall = undefined
      if (next.kind === 'call') frames += this.opened(next)
      else {
        this.heldCharacters -= next.text.length
        frames += this.write(next)
      }
    }
    return frames
  }

  private opened(call: ArrivingCall): string {
    const { isCustom, name, id = this.context.envelope.callId(call.index) } = call
    if (name === undefined) throw malformedResponse('The upstream called a tool without a name.')
    this.openCall = call
    call.state = 'open'
    const held = call.takeHeld()
    this.heldCharacters -= held.length
    return this.writer.call({ isCustom, name, callId: id }) + this.writer.callDelta(held)
  }

  private write({ kind, text }: Piece): string {
    if (kind === 'text') return this.writer.text(text)
    return kind === 'refusal' ? this.writer.refusal(text) : this.reasoning(text)
  }

  private reasoning(text: string): string {
    const { writer, context } = this
    const begun = writer.reasoning(() => sealedThoughts(this.thoughts, context))
    if (begun !== '') this.thoughts = ''
    this.thoughts += text
    if (context.wishes.isSummaryWanted) return begun + writer.summary(text)
    writer.keep(text)
    return begun
  }
}

/** Some upstreams give all calls one index, and each call an id of its own. */
const isAnother = (known: ArrivingCall, id: string | undefined): boolean =>
  known.isComplete && known.id !== undefined && id !== undefined && id !== known.id
