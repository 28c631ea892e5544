import type { GatewayError } from '../../../core/errors.js'
import type { EventTranslation } from '../../translator.js'
import type { Members } from '../members.js'
import { ResponseEventWriter } from '../responses/event-writer.js'
import { type AnswerSink, type BegunCall, MessageReader } from '../to-messages/answer-reader.js'
import type { Block } from '../to-messages/blocks.js'
import { type AnswerContext, sealedBlocks } from './answer.js'

/** Events of a message as those of a response: blocks follow one another in both. */
export class MessageToResponseEvents implements EventTranslation {
  private readonly writer: ResponseEventWriter
  private readonly reader: MessageReader

  constructor(context: AnswerContext) {
    const { customNames, target } = context
    const { thoughts, unknownWords } = target
    this.writer = new ResponseEventWriter(context.envelope, target.memory)
    const sink = new ItemWriter(this.writer, context)
    this.reader = new MessageReader(sink, { customNames, thoughts, unknownWords, memory: undefined })
  }

  event(data: Members): string {
    return this.reader.event(data)
  }

  end(): string {
    const { frames, end, explanation, usage } = this.reader.end()
    this.writer.report(usage)
    const refusal = explanation === undefined ? '' : this.writer.refusal(explanation)
    return frames + refusal + this.writer.end(end)
  }

  failure(error: GatewayError): string {
    this.writer.report(this.reader.usage)
    return this.writer.failed(error)
  }
}

/** Writes each thing as a part of an item. Items stay open: blocks of their kind may follow, and the end says whether they were cut. */
class ItemWriter implements AnswerSink {
  /** Of the reasoning item that is open, for its seal. */
  private run: Block[] = []

  constructor(
    private readonly writer: ResponseEventWriter,
    private readonly context: AnswerContext,
  ) {}

  begun(): string {
    return this.writer.begin()
  }

  textBegun(): string {
    return this.writer.partEnded()
  }

  text(text: string): string {
    return this.writer.text(text)
  }

  thoughtBegun(): string {
    const begun = this.writer.reasoning(() => sealedBlocks(this.run, this.context))
    if (begun !== '') this.run = []
    return begun + this.writer.summaryEnded()
  }

  thinking(text: string): string {
    this.writer.keep(text)
    return this.context.wishes.isSummaryWanted ? this.writer.summary(text) : ''
  }

  /** What of it only the upstream reads is kept as well. */
  thought(block: Block): string {
    for (const hidden of [block['signature'], block['data']]) if (typeof hidden === 'string') this.writer.keep(hidden)
    this.run.push(block)
    return ''
  }

  called({ id, name, isCustom }: BegunCall): string {
    return this.writer.call({ isCustom, name, callId: id })
  }

  input(text: string): string {
    return this.writer.callDelta(text)
  }
}
