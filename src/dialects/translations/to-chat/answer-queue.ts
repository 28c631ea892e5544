import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import { callNotEnded, callWentOn, isPlainEnd } from '../cut-calls.js'
import type { AnswerEnd } from '../stop-reasons.js'
import type { CallPiece } from './answers.js'
import { ArrivingCall } from './arriving-call.js'

/** Of one answer: what waits for its turn, and the ids and names of all calls, by which further pieces find theirs. */
const MAXIMUM_HELD_BYTES = 256 * 1024

/** Writes an answer in a client's dialect, one thing after the other; each method returns frames. */
export interface AnswerSink<Kind> {
  /** More of a text of this kind. */
  said(kind: Kind, text: string): string
  /** A call begins, the `ordinal`th from 0; of those whose id or name never came, the sink decides. */
  called(call: ArrivingCall, ordinal: number): string
  /** More of the input of the call that began last. */
  input(text: string): string
}

/** A text that waits. */
interface Said<Kind> {
  readonly kind: Kind
  text: string
}

/**
 * Brings what chunks mix into an order, as clients add deltas to what began last: what comes before a call is complete, and does not
 * belong to it, waits for its end. Methods return the frames of what could be written.
 */
export class AnswerQueue<Kind extends string> {
  /** The last call of each index. */
  private readonly calls = new Map<number, ArrivingCall>()
  private lastPlace = 0
  private open: ArrivingCall | undefined
  private openedCalls = 0
  private hasCutCall = false
  private waiting: (ArrivingCall | Said<Kind>)[] = []
  private heldBytes = 0
  private reportedBytes = 0

  /** `memory`: counts what is held; undefined where the sink counts it. */
  constructor(
    private readonly sink: AnswerSink<Kind>,
    private readonly memory: TranslationTarget['memory'],
  ) {}

  get hasCalls(): boolean {
    return this.calls.size > 0
  }

  said(kind: Kind, text: string): string {
    if (text === '') return ''
    if (this.open === undefined && this.waiting.length === 0) return this.sink.said(kind, text)
    const last = this.waiting.at(-1)
    if (last === undefined || isCall(last) || last.kind !== kind) this.waiting.push({ kind, text })
    else last.text += text
    return this.held(Buffer.byteLength(text))
  }

  /** A piece of a call; id and name come once, perhaps after pieces of the input. Throws `upstream_failed` for input of a complete one. */
  call(piece: CallPiece): string {
    const { text } = piece
    const call = this.callOf(piece)
    call.add(piece)
    if (call.isPassed || (call.state === 'written' && text.trim() !== '')) throw callWentOn()
    if (call.state === 'open') return this.sink.input(text) + this.advance()
    return call.state === 'waiting' ? this.held(call.hold(text)) : ''
  }

  /** Calls of a refused turn are not handed on. */
  dropWaitingCalls(): void {
    this.waiting = this.waiting.filter((next) => !isCall(next))
  }

  /** Everything that is left, once nothing more can come. Throws `upstream_failed` for a call that is cut where the end does not say so. */
  rest(end: AnswerEnd): string {
    if (end === 'refused') this.dropWaitingCalls()
    const frames = this.advance(true)
    this.closeCall()
    if (this.hasCutCall && isPlainEnd(end)) throw callNotEnded()
    return frames
  }

  private callOf(piece: CallPiece): ArrivingCall {
    const place = piece.index ?? this.placeOf(piece.id)
    this.lastPlace = place
    const known = this.calls.get(place)
    if (known?.isFollowedBy(piece) === false) return known
    known?.end()
    const call = new ArrivingCall(place)
    this.calls.set(place, call)
    const behind = this.waiting.findIndex((other) => isCall(other) && other.index > place)
    this.waiting.splice(behind === -1 ? this.waiting.length : behind, 0, call)
    return call
  }

  /** For upstreams that leave the index out: an id that is new begins a call, and without one the last call goes on. */
  private placeOf(id: string | undefined): number {
    if (id === undefined) return this.lastPlace
    return [...this.calls.values()].find((call) => call.id === id)?.index ?? this.calls.size
  }

  private held(bytes: number): string {
    this.heldBytes += bytes
    let frames = this.advance()
    // Arguments may come late, between those of other calls; when so much has come behind it, a call takes none.
    while (this.heldBytes > MAXIMUM_HELD_BYTES && this.open?.isWithoutInput === true) {
      this.open.end()
      frames += this.advance()
    }
    if (this.heldBytes > MAXIMUM_HELD_BYTES) {
      throw malformedResponse('The upstream called too many tools, or mixed their calls in too large pieces.')
    }
    if (this.heldBytes > this.reportedBytes) {
      this.memory?.add(this.heldBytes - this.reportedBytes)
      this.reportedBytes = this.heldBytes
    }
    return frames
  }

  /** Writes what waits, up to a call that is not complete; with `isLast`, all of it. */
  private advance(isLast = false): string {
    let frames = ''
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (!isLast && (this.open?.isComplete === false || (isCall(next) && !next.isReady))) break
      this.waiting.shift()
      this.closeCall()
      frames += isCall(next) ? this.opened(next) : this.written(next)
    }
    return frames
  }

  private closeCall(): void {
    if (this.open === undefined) return
    this.open.state = 'written'
    this.hasCutCall ||= this.open.isCut
    this.open = undefined
  }

  private opened(call: ArrivingCall): string {
    this.open = call
    call.state = 'open'
    const text = call.takeHeld()
    this.heldBytes -= Buffer.byteLength(text)
    return this.sink.called(call, this.openedCalls++) + this.sink.input(text)
  }

  private written({ kind, text }: Said<Kind>): string {
    this.heldBytes -= Buffer.byteLength(text)
    return this.sink.said(kind, text)
  }
}

const isCall = (next: object): next is ArrivingCall => next instanceof ArrivingCall
