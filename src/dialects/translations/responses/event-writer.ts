import { type GatewayError, presentableMessage } from '../../../core/errors.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import type { AnswerEnd } from '../stop-reasons.js'
import type { TokenFigures } from '../usage.js'
import { END_STATES, type ResponseEnvelope, type ResponseState } from './envelope.js'
import { EventFrames, type ItemPlace, OpenCall, OpenMessage, OpenReasoning } from './open-items.js'
import type { CalledTool } from './output-items.js'

/** The last event holds all that was written. */
const MAXIMUM_OUTPUT_BYTES = 8 * 1024 * 1024

/** Of an item, and of a part of one, about: what stands in them beside what the upstream said. */
const ITEM_BYTES = 256
const PART_BYTES = 128

interface DoneItem {
  readonly isCall: boolean
  /** JSON text. */
  readonly text: string
}

/**
 * Writes a response's event stream, one item after the other: clients build what they show by their order, and take a delta of an item
 * or a part that has not begun for an error. What is written is kept for the last event, and counted.
 */
export class ResponseEventWriter {
  private readonly frames = new EventFrames()
  private readonly done: DoneItem[] = []
  private open: OpenMessage | OpenReasoning | OpenCall | undefined
  private isBegun = false
  private keptBytes = 0
  private usage: TokenFigures | undefined
  private serviceTier: string | undefined

  constructor(
    private readonly envelope: ResponseEnvelope,
    private readonly memory: TranslationTarget['memory'],
  ) {}

  /** The first events; nothing when they have been written. */
  begin(): string {
    if (this.isBegun) return ''
    this.isBegun = true
    return (
      this.lifecycle('created', { status: 'in_progress' }) + this.lifecycle('in_progress', { status: 'in_progress' })
    )
  }

  /** Figures and words of the upstream for the last event. */
  report(usage: TokenFigures | undefined, serviceTier?: string): void {
    this.usage = usage ?? this.usage
    this.serviceTier = serviceTier ?? this.serviceTier
  }

  text(delta: string): string {
    this.keep(delta)
    const [message, before] = this.message()
    return before + message.textDelta(delta)
  }

  refusal(delta: string): string {
    this.keep(delta)
    const [message, before] = this.message()
    return before + message.refusalDelta(delta)
  }

  /** The next text is a part of its own, if it follows a text. */
  partEnded(): string {
    this.count(PART_BYTES)
    return this.open instanceof OpenMessage ? this.open.partEnded() : ''
  }

  /** Thoughts begin, or go on. `seal` is asked when they end. */
  reasoning(seal: () => string | undefined): string {
    if (this.open instanceof OpenReasoning) return ''
    const before = this.close()
    const item = new OpenReasoning(this.frames, this.nextPlace('rs'), seal)
    this.open = item
    return before + item.begun()
  }

  /** Of open thoughts. */
  summary(delta: string): string {
    this.keep(delta)
    return this.open instanceof OpenReasoning ? this.open.summaryDelta(delta) : ''
  }

  summaryEnded(): string {
    this.count(PART_BYTES)
    return this.open instanceof OpenReasoning ? this.open.summaryEnded() : ''
  }

  call(tool: CalledTool): string {
    this.keep(tool.callId)
    this.keep(tool.name)
    const before = this.close()
    const item = new OpenCall(this.frames, this.nextPlace(tool.isCustom ? 'ctc' : 'fc'), tool)
    this.open = item
    return before + item.begun()
  }

  /** Of the open call. */
  callDelta(delta: string): string {
    if (delta === '') return ''
    this.keep(delta)
    return this.open instanceof OpenCall ? this.open.delta(delta) : ''
  }

  /** Counts what is kept for the last event. Throws `upstream_failed` beyond what may be. */
  keep(text: string): void {
    this.count(Buffer.byteLength(text))
  }

  private count(bytes: number): void {
    this.keptBytes += bytes
    if (this.keptBytes > MAXIMUM_OUTPUT_BYTES) {
      throw malformedResponse('The upstream answered with more than can be translated.')
    }
    this.memory?.add(bytes)
  }

  /** Calls of a refused turn are not among the items of the last event, from which clients make them. */
  end(end: AnswerEnd): string {
    const isCut = end === 'truncated' || end === 'refused'
    const before = this.begin() + this.close(isCut ? 'incomplete' : 'completed')
    const output = this.done.filter(({ isCall }) => end !== 'refused' || !isCall).map(({ text }) => text)
    const { usage, serviceTier } = this
    const state = { ...END_STATES[end], output, usage, serviceTier }
    return before + this.lifecycle(state.status, state)
  }

  /** The last event of an answer that failed: with what there is of it, but for a call that is not whole. */
  failed(error: GatewayError): string {
    const output = this.done.map(({ text }) => text)
    const { open, usage, serviceTier } = this
    // Thoughts that have not ended are not sealed.
    if (open instanceof OpenReasoning) output.push(JSON.stringify(open.item('in_progress')))
    if (open instanceof OpenMessage) output.push(JSON.stringify(open.item('incomplete')))
    const code = error.kind === 'rate_limited' ? 'rate_limit_exceeded' : 'server_error'
    const failure = { code, message: presentableMessage(error.message) }
    return this.begin() + this.lifecycle('failed', { status: 'failed', output, usage, serviceTier, error: failure })
  }

  private message(): readonly [OpenMessage, string] {
    if (this.open instanceof OpenMessage) return [this.open, '']
    const before = this.close()
    const item = new OpenMessage(this.frames, this.nextPlace('msg'))
    this.open = item
    return [item, before + item.begun()]
  }

  private close(status: 'completed' | 'incomplete' = 'completed'): string {
    const { open } = this
    if (open === undefined) return ''
    this.open = undefined
    const { frames, item } = open.ended(status)
    this.done.push({ isCall: open instanceof OpenCall, text: item })
    return frames
  }

  private nextPlace(prefix: 'msg' | 'rs' | 'fc' | 'ctc'): ItemPlace {
    this.count(ITEM_BYTES)
    const outputIndex = this.done.length
    return { id: this.envelope.itemId(prefix, outputIndex), outputIndex }
  }

  private lifecycle(name: string, state: ResponseState): string {
    return this.frames.frame(`response.${name}`, `"response":${this.envelope.text(state)}`)
  }
}
