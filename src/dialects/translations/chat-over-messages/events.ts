import { nowSeconds } from '../../../core/time.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation, TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import { chatUsage, figuresOfMessages } from '../usage.js'
import { endOf, explanationOf, laterTotals, otherEvent } from '../to-messages/answer-end.js'
import { customInput } from '../tool-forms.js'
import { ThoughtsBeforeCalls } from '../to-messages/remembered-thoughts.js'
import { thinkingBlock } from '../to-messages/thinking-blocks.js'
import { type AnswerTerms, finishReason, secondCall } from './answer.js'

/** Of one answer, held until their blocks are over: the inputs of custom tools, and what was thought. */
const MAXIMUM_INPUT_CHARACTERS = 256 * 1024
const MAXIMUM_THINKING_CHARACTERS = 8 * 1024 * 1024

/** A block that is open. */
interface OpenBlock {
  readonly start: Members
  readonly type: unknown
  /** Of tools, from 0. */
  readonly call: number
  readonly isCustom: boolean
  /** Thinking, or the input of a custom tool. */
  held: string
  signature: string
  /** Whether a piece of its input was sent. */
  isSent: boolean
}

/** Events of messages as chunks of a chat completion. */
export class ChatChunks implements EventTranslation {
  private head = ''
  private readonly tail: string
  private readonly blocks = new Map<unknown, OpenBlock>()
  private readonly remembered: ThoughtsBeforeCalls
  private calls = 0
  private usage: Members | undefined
  private stopReason: unknown
  private stopDetails: unknown
  private heldThinking = 0
  private heldInput = 0

  constructor(
    private readonly terms: AnswerTerms,
    private readonly isUsageAsked: boolean,
    private readonly memory: TranslationTarget['memory'],
  ) {
    this.remembered = new ThoughtsBeforeCalls(terms.thoughts)
    // With usage asked for, every chunk but the last has none.
    this.tail = isUsageAsked ? ',"usage":null}\n\n' : '}\n\n'
  }

  /** Events of other types mean nothing to the caller. */
  event(data: Members): string {
    switch (data['type']) {
      case 'content_block_delta':
        return this.delta(this.openBlock(data['index']), data['delta'])
      case 'content_block_start':
        return this.opened(data['index'], data['content_block'])
      case 'content_block_stop':
        return this.closed(data['index'])
      case 'message_start':
        return this.started(data['message'])
      case 'message_delta':
        this.totals(data)
        return ''
      default:
        return otherEvent(data['type'], this.terms.unknownWords)
    }
  }

  end(): string {
    const end = endOf(this.stopReason, this.terms.unknownWords)
    const isOpen = [...this.blocks.values()].some(({ type }) => type === 'tool_use')
    if (this.head === '' || isOpen) throw malformedResponse('The upstream ended an answer that it had not finished.')
    const refusal = end === 'refused' ? this.chunk({ refusal: explanationOf(this.stopDetails) }) : ''
    return refusal + this.chunk({}, finishReason(end, this.terms)) + this.usageChunk() + 'data: [DONE]\n\n'
  }

  private chunk(delta: Members, finish: string | null = null): string {
    const text = `${this.head}[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":`
    return `${text}${JSON.stringify(finish)}}]${this.tail}`
  }

  private usageChunk(): string {
    if (!this.isUsageAsked || this.usage === undefined) return ''
    return `${this.head}[],"usage":${JSON.stringify(chatUsage(figuresOfMessages(this.usage)))}}\n\n`
  }

  private started(message: unknown): string {
    if (!isRecord(message) || typeof message['id'] !== 'string' || this.head !== '') {
      throw malformedResponse('The upstream began no message, or two.')
    }
    const first = { id: message['id'], object: 'chat.completion.chunk', created: nowSeconds(), model: this.terms.model }
    this.head = `data: ${JSON.stringify(first).slice(0, -1)},"choices":`
    this.usage = isRecord(message['usage']) ? message['usage'] : undefined
    return this.chunk({ role: 'assistant', content: '' })
  }

  /** Totals, which replace earlier ones; what is not told again stays. */
  private totals({ delta, usage }: Members): void {
    if (isRecord(delta)) {
      this.stopReason = delta['stop_reason'] ?? this.stopReason
      this.stopDetails = delta['stop_details'] ?? this.stopDetails
    }
    if (!isRecord(usage)) return
    this.usage = laterTotals(this.usage, usage)
  }

  private openBlock(index: unknown): OpenBlock {
    const block = this.blocks.get(index)
    if (block === undefined) throw malformedResponse('The upstream went on with a block that it had not begun.')
    return block
  }

  private opened(index: unknown, start: unknown): string {
    if (this.head === '' || !isRecord(start)) throw malformedResponse('The upstream began a block without its message.')
    const { type } = start
    const call = type === 'tool_use' ? this.calls++ : 0
    const { name } = start
    const isCustom = type === 'tool_use' && typeof name === 'string' && this.terms.tools.customNames.has(name)
    const block: OpenBlock = { start, type, call, isCustom, held: '', signature: '', isSent: false }
    this.blocks.set(index, block)
    if (type === 'tool_use') return this.callStarted(block)
    // Some upstreams put the beginning of a text where it is empty by the book.
    if (type === 'text') return this.text(start['text'])
    return type === 'thinking' ? this.thinking(block, start['thinking']) : ''
  }

  private callStarted({ start: { id, name }, call, isCustom }: OpenBlock): string {
    if (typeof id !== 'string' || typeof name !== 'string') throw malformedResponse('The upstream called no tool.')
    this.remembered.called(id)
    if (!this.terms.tools.isLegacy) {
      // The client's SDK puts together the pieces of functions alone: a custom tool's call is told at once, at its end.
      return isCustom
        ? ''
        : this.chunk({ tool_calls: [{ index: call, id, type: 'function', function: { name, arguments: '' } }] })
    }
    if (call > 0) throw secondCall()
    return this.chunk({ function_call: { name, arguments: '' } })
  }

  private delta(block: OpenBlock, delta: unknown): string {
    if (!isRecord(delta)) throw malformedResponse('The upstream sent a delta without content.')
    switch (delta['type']) {
      case 'text_delta':
        return this.text(delta['text'])
      case 'input_json_delta':
        return this.input(block, delta['partial_json'])
      case 'thinking_delta':
        return this.thinking(block, delta['thinking'])
      case 'signature_delta':
        if (typeof delta['signature'] === 'string') block.signature = delta['signature']
        return ''
      default:
        return ''
    }
  }

  private text(text: unknown): string {
    if (typeof text !== 'string' || text === '') return ''
    this.remembered.said(text)
    return this.chunk({ content: text })
  }

  private thinking(block: OpenBlock, thinking: unknown): string {
    if (typeof thinking !== 'string' || thinking === '') return ''
    this.heldThinking += thinking.length
    if (this.heldThinking > MAXIMUM_THINKING_CHARACTERS) throw malformedResponse('The upstream thought too much.')
    this.memory?.add(thinking.length)
    block.held += thinking
    return this.chunk({ reasoning_content: thinking })
  }

  private input(block: OpenBlock, piece: unknown): string {
    if (typeof piece !== 'string' || piece === '' || block.type !== 'tool_use') return ''
    if (!block.isCustom) {
      block.isSent = true
      return this.argumentsPiece(block, piece)
    }
    this.heldInput += piece.length
    if (this.heldInput > MAXIMUM_INPUT_CHARACTERS) throw malformedResponse('The upstream sent too long an input.')
    block.held += piece
    return ''
  }

  private argumentsPiece({ call }: OpenBlock, piece: string): string {
    return this.terms.tools.isLegacy
      ? this.chunk({ function_call: { arguments: piece } })
      : this.chunk({ tool_calls: [{ index: call, function: { arguments: piece } }] })
  }

  private closed(index: unknown): string {
    const block = this.openBlock(index)
    this.blocks.delete(index)
    if (block.type === 'tool_use') return this.callEnded(block)
    const { start, held, signature } = block
    const thought = thinkingBlock(
      block.type === 'thinking' ? { ...start, thinking: held, signature: signature || start['signature'] } : start,
    )
    if (thought === undefined) return ''
    this.remembered.add(thought)
    return this.chunk({ thinking_blocks: [thought] })
  }

  /** An input of which no piece came is whole in the beginning of its block: empty by the book. */
  private callEnded(block: OpenBlock): string {
    const whole = JSON.stringify(isRecord(block.start['input']) ? block.start['input'] : {})
    if (!block.isCustom) return block.isSent ? '' : this.argumentsPiece(block, whole)
    const { id, name } = block.start
    const custom = { name, input: customInput(block.held === '' ? whole : block.held) }
    return this.chunk({ tool_calls: [{ index: block.call, id, type: 'custom', custom }] })
  }
}
