import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import { callNotEnded, callWentOn, isPlainEnd, JsonEnd } from '../cut-calls.js'
import { HeldText } from '../held-text.js'
import { isAbsent, type Members, recordOr } from '../members.js'
import { type AnswerEnd, endOfMessage, explanationOf, gravestStop } from '../stop-reasons.js'
import { customInput } from '../tool-forms.js'
import { figuresOfMessages, type TokenFigures } from '../usage.js'
import { type Block, textIn } from './blocks.js'
import { ThoughtsBeforeCalls } from './remembered-thoughts.js'
import { isThinkingType, thinkingBlock } from './thinking-blocks.js'

/** A call of a tool, as the upstream begins it. */
export interface BegunCall {
  readonly id: string
  readonly name: string
  /** Takes a text. */
  readonly isCustom: boolean
}

/** Writes an answer in a client's dialect, one thing after the other; each method returns frames. */
export interface AnswerSink {
  begun(message: Members): string
  /** A block of text begins. */
  textBegun(): string
  text(text: string): string
  /** A block of thinking begins, also one that shows nothing. */
  thoughtBegun(): string
  thinking(text: string): string
  /** The block of thinking is over, and whole. */
  thought(block: Block): string
  called(call: BegunCall): string
  /** More of the input of the call that began last; of a custom tool its text, once, when the call is over. */
  input(text: string): string
}

/** What a stream is read with. `memory` counts what is held; undefined where the sink counts it. */
interface ReaderTerms extends Pick<TranslationTarget, 'thoughts' | 'unknownWords' | 'memory'> {
  /** Names of tools that take a text. */
  readonly customNames: ReadonlySet<string>
}

interface EndOfAnswer {
  /** Of a block that the upstream left open. */
  readonly frames: string
  readonly end: AnswerEnd
  /** Why the upstream refused; undefined = it did not. */
  readonly explanation: string | undefined
  readonly usage: TokenFigures | undefined
}

/** The input of a custom tool comes within JSON, and is not known before its end. */
const MAXIMUM_INPUT_CHARACTERS = 256 * 1024
/** A block of thinking is shown once more as a whole. */
const MAXIMUM_THINKING_CHARACTERS = 8 * 1024 * 1024

interface OpenThought {
  readonly kind: 'thought'
  readonly start: Members
  signature: unknown
}

interface OpenCall {
  readonly kind: 'call'
  /** Of upstreams that do not send it piece by piece; empty by the book. */
  readonly input: unknown
  /** Of a custom tool. */
  readonly held: HeldText | undefined
  readonly jsonEnd: JsonEnd
  hasPieces: boolean
}

type OpenBlock = { readonly index: unknown } & ({ readonly kind: 'text' | 'other' } | OpenThought | OpenCall)

/** Reads the events of a message, whose blocks follow one another: indexes never interleave on the wire, and are refused if they do. */
export class MessageReader {
  private readonly remembered: ThoughtsBeforeCalls
  private readonly held: HeldText
  private isBegun = false
  private open: OpenBlock | undefined
  private totals: Members | undefined
  private stopReason: unknown
  private stopDetails: unknown
  /** The arguments of the last block, a call, have no end. */
  private isCallCut = false

  constructor(
    private readonly sink: AnswerSink,
    private readonly terms: ReaderTerms,
  ) {
    this.remembered = new ThoughtsBeforeCalls(terms.thoughts)
    this.held = new HeldText(MAXIMUM_THINKING_CHARACTERS, 'The upstream thought too much.', terms.memory)
  }

  /** Figures so far. */
  get usage(): TokenFigures | undefined {
    return figuresOfMessages(this.totals)
  }

  event(data: Members): string {
    switch (data['type']) {
      case 'content_block_delta':
        return this.delta(data)
      case 'content_block_start':
        return this.blockBegun(data)
      case 'content_block_stop':
        return this.blockStopped(data)
      case 'message_start':
        return this.begun(data['message'])
      case 'message_delta':
        return this.changed(data)
      default:
        return this.otherEvent(data['type'])
    }
  }

  /** Called once, when the upstream's stream was complete. Throws `upstream_failed` for an answer without an end, or a call without one. */
  end(): EndOfAnswer {
    const end = endOfMessage(this.stopReason, this.terms.unknownWords)
    if (!this.isBegun) throw malformedResponse('The upstream ended an answer that it had not begun.')
    if (isPlainEnd(end)) this.checkCallEnded()
    const explanation = end === 'refused' ? explanationOf(this.stopDetails) : undefined
    return { frames: this.closed(), end, explanation, usage: this.usage }
  }

  private begun(message: unknown): string {
    if (!isRecord(message) || this.isBegun) throw malformedResponse('The upstream began no message, or two.')
    this.isBegun = true
    this.count(message['usage'])
    return this.sink.begun(message)
  }

  private changed({ delta, usage }: Members): string {
    const { stop_reason: reason, stop_details: details } = recordOr(delta)
    this.stopReason = gravestStop(this.stopReason, reason)
    this.stopDetails = details ?? this.stopDetails
    this.count(usage)
    return ''
  }

  /** Totals, which replace earlier ones; what is not named again stays. */
  private count(usage: unknown): void {
    if (!isRecord(usage)) return
    const named = Object.entries(usage).filter(([, total]) => !isAbsent(total))
    this.totals = { ...this.totals, ...Object.fromEntries(named) }
  }

  private blockBegun({ index, content_block: start }: Members): string {
    if (!this.isBegun || !isRecord(start)) throw malformedResponse('The upstream began a block without its message.')
    this.checkCallEnded()
    const before = this.closed()
    const { type } = start
    if (isThinkingType(type)) return before + this.thoughtBegun(index, start)
    if (type === 'tool_use') return before + this.callBegun(index, start)
    this.open = { index, kind: type === 'text' ? 'text' : 'other' }
    // Some upstreams put the beginning of a text where it is empty by the book.
    return type === 'text' ? before + this.sink.textBegun() + this.text(start['text']) : before
  }

  /** Of a call alone: the beginning of a text is a text too, the beginning of arguments is not what the model asked for. */
  private checkCallEnded(): void {
    if (this.open?.kind === 'call' || this.isCallCut) throw callNotEnded()
  }

  private thoughtBegun(index: unknown, start: Members): string {
    this.open = { index, kind: 'thought', start, signature: start['signature'] }
    return this.sink.thoughtBegun() + this.thinking(start['thinking'])
  }

  private callBegun(index: unknown, { id, name, input }: Members): string {
    if (typeof id !== 'string' || typeof name !== 'string') throw malformedResponse('The upstream called no tool.')
    const isCustom = this.terms.customNames.has(name)
    const held = isCustom ? this.heldInput() : undefined
    this.open = { index, kind: 'call', input, held, jsonEnd: new JsonEnd(), hasPieces: false }
    this.remembered.called(id)
    return this.sink.called({ id, name, isCustom })
  }

  private heldInput(): HeldText {
    return new HeldText(MAXIMUM_INPUT_CHARACTERS, 'The upstream sent too long an input.', this.terms.memory)
  }

  private delta({ index, delta }: Members): string {
    const { open } = this
    if (open === undefined || open.index !== index || !isRecord(delta)) {
      throw malformedResponse('The upstream went on with a block that is not open.')
    }
    switch (delta['type']) {
      case 'text_delta':
        return open.kind === 'text' ? this.text(delta['text']) : misplaced()
      case 'input_json_delta':
        // Of a tool that the upstream runs itself: its block means nothing to the caller.
        if (open.kind === 'other') return ''
        return open.kind === 'call' ? this.piece(open, delta['partial_json']) : misplaced()
      case 'thinking_delta':
        return open.kind === 'thought' ? this.thinking(delta['thinking']) : misplaced()
      case 'signature_delta':
        return open.kind === 'thought' ? this.signed(open, delta['signature']) : misplaced()
      default:
        return ''
    }
  }

  private text(piece: unknown): string {
    const text = textIn(piece)
    if (text === '') return ''
    this.remembered.said(text)
    return this.sink.text(text)
  }

  private thinking(piece: unknown): string {
    const thinking = textIn(piece)
    if (thinking === '') return ''
    this.held.add(thinking)
    return this.sink.thinking(thinking)
  }

  /** Whole each time, as the vendor's own client reads it. */
  private signed(thought: OpenThought, signature: unknown): string {
    if (typeof signature === 'string' && signature !== '') thought.signature = signature
    return ''
  }

  private piece(call: OpenCall, piece: unknown): string {
    const json = textIn(piece)
    if (json === '') return ''
    call.hasPieces = true
    call.jsonEnd.add(json)
    if (call.jsonEnd.isPassed) throw callWentOn()
    if (call.held === undefined) return this.sink.input(json)
    call.held.add(json)
    return ''
  }

  private blockStopped({ index }: Members): string {
    if (this.open === undefined || this.open.index !== index) {
      throw malformedResponse('The upstream ended a block that is not open.')
    }
    return this.closed()
  }

  private closed(): string {
    const { open } = this
    this.open = undefined
    if (open?.kind === 'thought') return this.thoughtEnded(open)
    return open?.kind === 'call' ? this.callEnded(open) : ''
  }

  private thoughtEnded({ start, signature }: OpenThought): string {
    const block = thinkingBlock({ ...start, thinking: this.held.take(), signature })
    if (block === undefined) return ''
    // What only the upstream reads of it: kept until a call comes.
    for (const hidden of [block['signature'], block['data']]) if (typeof hidden === 'string') this.held.count(hidden)
    this.remembered.add(block)
    return this.sink.thought(block)
  }

  private callEnded({ input, held, hasPieces, jsonEnd }: OpenCall): string {
    this.isCallCut = jsonEnd.isMissing
    const whole = hasPieces ? '' : JSON.stringify(isAbsent(input) ? {} : input)
    if (held === undefined) return hasPieces ? '' : this.sink.input(whole)
    return this.sink.input(customInput(hasPieces ? held.take() : whole))
  }

  /** What only keeps the connection alive does so in other dialects; nothing else has a meaning there. */
  private otherEvent(type: unknown): string {
    if (type === 'ping') return ': ping\n\n'
    if (typeof type === 'string' && !SILENT_EVENTS.has(type)) this.terms.unknownWords?.note('event', type)
    return ''
  }
}

/** An answer that lost a piece would look whole. */
function misplaced(): never {
  throw malformedResponse('The upstream went on with a block of another kind.')
}

const SILENT_EVENTS: ReadonlySet<string> = new Set(['message_stop', 'error'])
