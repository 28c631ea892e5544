import type { GatewayError } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation } from '../../translator.js'
import type { Members } from '../members.js'
import { ResponseEventWriter } from '../responses/event-writer.js'
import { figuresOfMessages } from '../usage.js'
import { endOf, explanationOf, laterTotals, otherEvent } from '../to-messages/answer-end.js'
import type { Block } from '../to-messages/blocks.js'
import { customInput } from '../tool-forms.js'
import { ThoughtsBeforeCalls } from '../to-messages/remembered-thoughts.js'
import { isThinkingType, thinkingBlock } from '../to-messages/thinking-blocks.js'
import { type AnswerContext, sealedBlocks } from './answer.js'

/** The input of a custom tool comes within JSON, and is not known before its end. */
const MAXIMUM_HELD_CHARACTERS = 256 * 1024

interface OpenThoughts {
  readonly kind: 'thoughts'
  readonly type: unknown
  thinking: string
  signature: string
  /** What is only for the upstream's eyes. */
  readonly data: unknown
}

interface OpenCall {
  readonly kind: 'call'
  readonly isCustom: boolean
  /** Of upstreams that do not send it piece by piece. */
  readonly input: unknown
  hasPieces: boolean
  held: string
}

type OpenBlock = { readonly index: unknown } & ({ readonly kind: 'text' | 'other' } | OpenThoughts | OpenCall)

/** Events of a message as those of a response: blocks follow one another in both. */
export class MessageToResponseEvents implements EventTranslation {
  private readonly writer: ResponseEventWriter
  private readonly thoughts: ThoughtsBeforeCalls
  private open: OpenBlock | undefined
  /** Of the reasoning item that is open, for its seal. */
  private run: Block[] = []
  private usage: Members | undefined
  private stopReason: string | undefined
  private stopDetails: unknown

  constructor(private readonly context: AnswerContext) {
    this.writer = new ResponseEventWriter(context.envelope, context.target.memory)
    this.thoughts = new ThoughtsBeforeCalls(context.target.thoughts)
  }

  event(event: Members): string {
    switch (event['type']) {
      case 'message_start':
        this.readUsage(isRecord(event['message']) ? event['message']['usage'] : undefined)
        return this.writer.begin()
      case 'content_block_start':
        return this.writer.begin() + this.begun(event)
      case 'content_block_delta':
        return this.delta(event)
      case 'content_block_stop':
        return this.stopped(event)
      case 'message_delta':
        this.readEnd(event)
        return ''
      default:
        return otherEvent(event['type'], this.context.target.unknownWords)
    }
  }

  end(): string {
    const end = endOf(this.stopReason, this.context.target.unknownWords)
    const rest = this.closed()
    if (this.usage !== undefined) this.writer.report(figuresOfMessages(this.usage))
    const refusal = end === 'refused' ? this.writer.begin() + this.writer.refusal(explanationOf(this.stopDetails)) : ''
    return rest + refusal + this.writer.end(end)
  }

  failure(error: GatewayError): string {
    if (this.usage !== undefined) this.writer.report(figuresOfMessages(this.usage))
    return this.writer.failed(error)
  }

  /** Totals: later figures replace earlier ones. */
  private readUsage(usage: unknown): void {
    if (isRecord(usage)) this.usage = laterTotals(this.usage, usage)
  }

  private readEnd({ delta, usage }: Members): void {
    this.readUsage(usage)
    if (!isRecord(delta)) return
    if (typeof delta['stop_reason'] === 'string') this.stopReason = delta['stop_reason']
    this.stopDetails = delta['stop_details'] ?? this.stopDetails
  }

  private begun({ index, content_block: block }: Members): string {
    if (!isRecord(block)) throw malformedResponse('The upstream began a block that is none.')
    const before = this.closed()
    const { type } = block
    if (isThinkingType(type)) return before + this.thoughtsBegun(index, block)
    if (type === 'tool_use') return before + this.callBegun(index, block)
    this.open = { index, kind: type === 'text' ? 'text' : 'other' }
    if (type !== 'text') return before
    return before + this.writer.partEnded() + this.text(block['text'])
  }

  private thoughtsBegun(index: unknown, block: Members): string {
    const { type, thinking, signature, data } = block
    const begun = this.writer.reasoning(() => sealedBlocks(this.run, this.context))
    if (begun !== '') this.run = []
    const open: OpenBlock & OpenThoughts = { index, kind: 'thoughts', type, thinking: '', signature: '', data }
    this.open = open
    this.keep(data)
    return begun + this.writer.summaryEnded() + this.thought(open, { thinking, signature })
  }

  private callBegun(index: unknown, { id, name, input }: Members): string {
    if (typeof id !== 'string' || typeof name !== 'string') throw malformedResponse('The upstream called no tool.')
    const isCustom = this.context.customNames.has(name)
    this.open = { index, kind: 'call', isCustom, input, hasPieces: false, held: '' }
    this.thoughts.called(id)
    return this.writer.call({ isCustom, name, callId: id })
  }

  private delta({ index, delta }: Members): string {
    const { open } = this
    if (open === undefined || open.index !== index || !isRecord(delta)) {
      throw malformedResponse('The upstream went on with a block that is not open.')
    }
    if (open.kind === 'text') return this.text(delta['text'])
    if (open.kind === 'thoughts') return this.thought(open, delta)
    return open.kind === 'call' ? this.piece(open, delta['partial_json']) : ''
  }

  private text(text: unknown): string {
    if (typeof text !== 'string' || text === '') return ''
    this.thoughts.said(text)
    return this.writer.text(text)
  }

  private thought(open: OpenThoughts, { thinking, signature }: Members): string {
    if (typeof signature === 'string') open.signature = signature
    this.keep(signature)
    if (typeof thinking !== 'string' || thinking === '') return ''
    open.thinking += thinking
    this.keep(thinking)
    return this.context.wishes.isSummaryWanted ? this.writer.summary(thinking) : ''
  }

  private keep(text: unknown): void {
    if (typeof text === 'string') this.writer.keep(text)
  }

  private piece(call: OpenCall, json: unknown): string {
    if (typeof json !== 'string' || json === '') return ''
    call.hasPieces = true
    if (!call.isCustom) return this.writer.callDelta(json)
    call.held += json
    if (call.held.length > MAXIMUM_HELD_CHARACTERS) {
      throw malformedResponse('The upstream called a custom tool with more than can be translated.')
    }
    return ''
  }

  private stopped({ index }: Members): string {
    if (this.open?.index !== index) throw malformedResponse('The upstream ended a block that is not open.')
    return this.closed()
  }

  /** The item stays open: whether the answer was cut in it is told later, and blocks of its kind may follow. */
  private closed(): string {
    const { open } = this
    this.open = undefined
    if (open?.kind === 'thoughts') {
      const block = thinkingBlock(open)
      if (block === undefined) return ''
      this.run.push(block)
      this.thoughts.add(block)
      return ''
    }
    if (open?.kind !== 'call') return ''
    if (open.isCustom) return this.writer.callDelta(customInput(open.hasPieces ? open.held : textOf(open.input)))
    return open.hasPieces ? '' : this.writer.callDelta(textOf(open.input))
  }
}

const textOf = (input: unknown): string => (isRecord(input) ? JSON.stringify(input) : '{}')
