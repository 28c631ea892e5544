import { nowSeconds } from '../../../core/time.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation, TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import { type AnswerSink, type BegunCall, MessageReader } from '../to-messages/answer-reader.js'
import type { Block } from '../to-messages/blocks.js'
import { chatUsage } from '../usage.js'
import { type AnswerTerms, finishReason, secondCall } from './answer.js'

/** Events of a message as chunks of a chat completion. */
export class ChatChunks implements EventTranslation {
  private readonly writer: ChunkWriter
  private readonly reader: MessageReader

  constructor(
    private readonly terms: AnswerTerms,
    private readonly isUsageAsked: boolean,
    memory: TranslationTarget['memory'],
  ) {
    const { tools, thoughts, unknownWords } = terms
    this.writer = new ChunkWriter(terms, isUsageAsked)
    this.reader = new MessageReader(this.writer, { customNames: tools.customNames, thoughts, unknownWords, memory })
  }

  event(data: Members): string {
    return this.reader.event(data)
  }

  end(): string {
    const { frames, end, explanation, usage } = this.reader.end()
    const refusal = explanation === undefined ? '' : this.writer.chunk({ refusal: explanation })
    const last = this.writer.chunk({}, finishReason(end, this.writer.hasCalls, this.terms))
    const totals = this.isUsageAsked && usage !== undefined ? this.writer.usageChunk(chatUsage(usage)) : ''
    return `${frames}${refusal}${last}${totals}data: [DONE]\n\n`
  }
}

/** Writes each thing as a chunk. */
class ChunkWriter implements AnswerSink {
  private head = ''
  private readonly tail: string
  private call: BegunCall | undefined
  /** Of the call, from 0. */
  private callIndex = -1

  constructor(
    private readonly terms: AnswerTerms,
    isUsageAsked: boolean,
  ) {
    // With usage asked for, every chunk but the last has none.
    this.tail = isUsageAsked ? ',"usage":null}\n\n' : '}\n\n'
  }

  chunk(delta: Members, finish: string | null = null): string {
    const text = `${this.head}[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":`
    return `${text}${JSON.stringify(finish)}}]${this.tail}`
  }

  usageChunk(usage: object): string {
    return `${this.head}[],"usage":${JSON.stringify(usage)}}\n\n`
  }

  get hasCalls(): boolean {
    return this.callIndex >= 0
  }

  begun({ id }: Members): string {
    if (typeof id !== 'string') throw malformedResponse('The upstream began a message without an id.')
    const first = { id, object: 'chat.completion.chunk', created: nowSeconds(), model: this.terms.model }
    this.head = `data: ${JSON.stringify(first).slice(0, -1)},"choices":`
    return this.chunk({ role: 'assistant', content: '' })
  }

  textBegun(): string {
    return ''
  }

  text(content: string): string {
    return this.chunk({ content })
  }

  thoughtBegun(): string {
    return ''
  }

  thinking(text: string): string {
    return this.chunk({ reasoning_content: text })
  }

  thought(block: Block): string {
    return this.chunk({ thinking_blocks: [block] })
  }

  called(call: BegunCall): string {
    this.call = call
    this.callIndex++
    const { id, name, isCustom } = call
    if (this.terms.tools.isLegacy) {
      if (this.callIndex > 0) throw secondCall()
      return this.chunk({ function_call: { name, arguments: '' } })
    }
    // The client's SDK puts together the pieces of functions alone: a custom tool's call is written as one, at its end.
    if (isCustom) return ''
    return this.callChunk({ id, type: 'function', function: { name, arguments: '' } })
  }

  input(text: string): string {
    if (this.terms.tools.isLegacy) return this.chunk({ function_call: { arguments: text } })
    if (this.call?.isCustom !== true) return this.callChunk({ function: { arguments: text } })
    const { id, name } = this.call
    return this.callChunk({ id, type: 'custom', custom: { name, input: text } })
  }

  private callChunk(call: Members): string {
    return this.chunk({ tool_calls: [{ index: this.callIndex, ...call }] })
  }
}
