import { tokensOf } from '../../../core/token-counter.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation, TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import { HeldText } from '../held-text.js'
import { endOfChat, gravestFinish } from '../stop-reasons.js'
import { AnswerQueue } from '../to-chat/answer-queue.js'
import {
  type CallPiece,
  callsIn,
  choiceIn,
  contentIn,
  deltaIn,
  finishReasonIn,
  refusalIn,
  thoughtsIn,
  usageIn,
} from '../to-chat/answers.js'
import { filledFigures, latestFigures, messagesUsage, type ReportedFigures } from '../usage.js'
import { type MessageContext, emptyMessage, estimated, stopOf } from './answer.js'
import { BlockWriter, type TextKind } from './block-writer.js'

/** Of a refusal, which stands in the last events. */
const MAXIMUM_REFUSAL_CHARACTERS = 256 * 1024

/** Members of a message's usage that its last delta has, too. */
export const DELTA_USAGE: ReadonlySet<string> = new Set([
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  'output_tokens_details',
  'server_tool_use',
])

/** Translates the chunks of one chat stream to the events of a message. */
export class MessageEvents implements EventTranslation {
  private readonly blocks: BlockWriter
  private readonly queue: AnswerQueue<TextKind>
  private isStarted = false
  private finishReason: string | undefined
  private readonly refusal: HeldText
  private usage: ReportedFigures | undefined
  /** Estimated, for upstreams that report no usage. */
  private outputTokens = 0

  constructor(
    private readonly context: MessageContext,
    memory: TranslationTarget['memory'],
  ) {
    this.blocks = new BlockWriter(context, memory)
    this.refusal = new HeldText(MAXIMUM_REFUSAL_CHARACTERS, 'The upstream refused at too great length.', memory)
    this.queue = new AnswerQueue(this.blocks, memory)
  }

  event(chunk: Members): string {
    const start = this.isStarted ? '' : this.start(chunk)
    this.usage = latestFigures(this.usage, usageIn(chunk))
    const choice = choiceIn(chunk)
    if (choice === undefined) return start
    this.finishReason = gravestFinish(this.finishReason, finishReasonIn(choice))
    return start + this.content(deltaIn(choice))
  }

  end(): string {
    if (this.finishReason === undefined) {
      throw malformedResponse('The upstream ended its stream without a finish reason.')
    }
    const end = endOfChat(
      this.finishReason,
      { hasCalls: this.queue.hasCalls, hasRefusal: !this.refusal.isEmpty },
      this.context.unknownWords,
    )
    const delta = { ...stopOf(end, this.refusal.take()), container: null }
    const rest = this.queue.rest(end) + this.blocks.close()
    return rest + frameOf({ type: 'message_delta', delta, usage: this.totals() }) + STOP_FRAME
  }

  private start(chunk: Members): string {
    this.isStarted = true
    // The prompt's figure comes last in chat: a client gets it corrected at the end.
    const message = emptyMessage(chunk, this.context, estimated(this.context.inputTokens()))
    return frameOf({ type: 'message_start', message })
  }

  private content(delta: Members): string {
    let frames = ''
    const thoughts = thoughtsIn(delta)
    if (thoughts !== '') frames += this.text('thinking', thoughts)
    const text = contentIn(delta)
    if (text !== '') frames += this.text('text', text)
    const refusal = refusalIn(delta)
    if (refusal !== '') this.refuse(refusal)
    for (const call of callsIn(delta)) frames += this.call(call)
    return frames
  }

  private text(kind: TextKind, text: string): string {
    this.outputTokens += tokensOf(text)
    return this.queue.said(kind, text)
  }

  private refuse(text: string): void {
    this.refusal.add(text)
    this.queue.dropWaitingCalls()
  }

  private call(piece: CallPiece): string {
    this.outputTokens += tokensOf(piece.text)
    // Calls of a refused turn are not handed on.
    return this.refusal.isEmpty ? this.queue.call(piece) : ''
  }

  private totals(): object {
    const figures = filledFigures(this.usage, { input: () => 0, output: () => this.outputTokens })
    const usage = messagesUsage(figures)
    const totals = Object.fromEntries(Object.entries(usage).filter(([name]) => DELTA_USAGE.has(name)))
    // Without a figure that of the first event stands.
    return this.usage?.input === undefined ? { ...totals, input_tokens: null } : totals
  }
}

const frameOf = (event: Members & { readonly type: string }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

const STOP_FRAME = frameOf({ type: 'message_stop' })
