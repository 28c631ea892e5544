import { jsonTextOf } from '../../../core/json-text.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import { AnswerCallIds } from '../../made-ids.js'
import type { TranslationTarget } from '../../translator.js'
import { HeldText } from '../held-text.js'
import { madeSignature } from '../seals.js'
import type { AnswerSink } from '../to-chat/answer-queue.js'
import type { ArrivingCall } from '../to-chat/arriving-call.js'
import { inputOfArguments } from '../tool-forms.js'
import { type MessageContext, textBlock, thinkingBlock, toolUseBlock } from './answer.js'

/** Of an input that is no object. */
const MAXIMUM_HELD_CHARACTERS = 256 * 1024

export type TextKind = 'text' | 'thinking'

/** Writes the blocks of a message as frames, each closed before the next begins. */
export class BlockWriter implements AnswerSink<TextKind> {
  private index = -1
  private open: TextKind | 'tool_use' | undefined
  /** The first character of the input of the open call, once it has come: that of an object, as it should be. */
  private inputStart: string | undefined
  private held: HeldText
  private readonly callIds = new AnswerCallIds()

  constructor(
    private readonly context: MessageContext,
    private readonly memory: TranslationTarget['memory'],
  ) {
    this.held = this.newHeld()
  }

  said(kind: TextKind, text: string): string {
    if (this.open === kind) return this.textDelta(kind, text)
    return this.start(kind, kind === 'text' ? textBlock() : thinkingBlock('', '')) + this.textDelta(kind, text)
  }

  called({ id, name, isCustom }: ArrivingCall, ordinal: number): string {
    if (name === undefined || isCustom) throw malformedResponse('The upstream called no function by its name.')
    this.inputStart = undefined
    this.held = this.newHeld()
    return this.start('tool_use', toolUseBlock(this.callIds.next(id, ordinal), name, {}, this.context))
  }

  /** What is no object is held until it is whole, as in a whole answer the client gets it within one. */
  input(text: string): string {
    this.inputStart ??= text.trimStart()[0]
    if (this.inputStart === '{') return this.inputDelta(this.held.take() + text)
    this.held.add(text)
    return ''
  }

  /** Ends the block that is open. */
  close(): string {
    if (this.open === undefined) return ''
    const rest = this.rest()
    this.open = undefined
    return `${rest}event: content_block_stop\ndata: {"type":"content_block_stop","index":${this.index}}\n\n`
  }

  /** Of the block that is open. */
  private rest(): string {
    if (this.open === 'thinking') return this.delta({ type: 'signature_delta', signature: madeSignature() })
    const held = this.held.take()
    return held.trim() === '' ? '' : this.inputDelta(jsonTextOf(inputOfArguments(held)))
  }

  private newHeld(): HeldText {
    return new HeldText(MAXIMUM_HELD_CHARACTERS, 'The upstream sent too long an input.', this.memory)
  }

  private inputDelta(json: string): string {
    return json === '' ? '' : this.delta({ type: 'input_json_delta', partial_json: json })
  }

  private start(kind: TextKind | 'tool_use', block: object): string {
    const before = this.close()
    this.open = kind
    this.index++
    return before + this.frame('content_block_start', 'content_block', block)
  }

  private textDelta(kind: TextKind, text: string): string {
    return this.delta(kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text })
  }

  private delta(delta: object): string {
    return this.frame('content_block_delta', 'delta', delta)
  }

  private frame(type: string, member: string, value: object): string {
    const { index } = this
    return `event: ${type}\ndata: {"type":"${type}","index":${index},"${member}":${JSON.stringify(value)}}\n\n`
  }
}
