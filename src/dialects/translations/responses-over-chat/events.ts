import type { GatewayError } from '../../../core/errors.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import { AnswerCallIds } from '../../made-ids.js'
import type { EventTranslation, UnknownWords } from '../../translator.js'
import type { Members } from '../members.js'
import { ResponseEventWriter } from '../responses/event-writer.js'
import { endOfChat, gravestFinish } from '../stop-reasons.js'
import { AnswerQueue, type AnswerSink } from '../to-chat/answer-queue.js'
import {
  callsIn,
  choiceIn,
  contentIn,
  deltaIn,
  finishReasonIn,
  refusalIn,
  thoughtsIn,
  usageIn,
} from '../to-chat/answers.js'
import type { ArrivingCall } from '../to-chat/arriving-call.js'
import { completeFigures, latestFigures, type ReportedFigures } from '../usage.js'
import { type ResponseContext, sealedThoughts, tierOf } from './answer.js'

type Kind = 'reasoning' | 'text' | 'refusal'

/** Chunks of a chat completion as events of a response, whose items follow one another. */
export class ChatToResponseEvents implements EventTranslation {
  private readonly writer: ResponseEventWriter
  private readonly queue: AnswerQueue<Kind>
  private finishReason: string | undefined
  private hasRefusal = false
  private usage: ReportedFigures | undefined
  private readonly unknownWords: UnknownWords | undefined

  constructor(context: ResponseContext) {
    this.writer = new ResponseEventWriter(context.envelope, context.target.memory)
    this.unknownWords = context.target.unknownWords
    // The writer counts what it keeps, which are all texts that were held.
    this.queue = new AnswerQueue(new ItemSink(this.writer, context), undefined)
  }

  event(chunk: Members): string {
    const before = this.writer.begin()
    this.usage = latestFigures(this.usage, usageIn(chunk))
    this.writer.report(completeFigures(this.usage), tierOf(chunk))
    const choice = choiceIn(chunk)
    if (choice === undefined) return before
    this.finishReason = gravestFinish(this.finishReason, finishReasonIn(choice))
    return before + this.delta(deltaIn(choice))
  }

  end(): string {
    if (this.finishReason === undefined) throw malformedResponse('The upstream ended without a finish reason.')
    const { hasRefusal, unknownWords } = this
    const end = endOfChat(this.finishReason, { hasCalls: this.queue.hasCalls, hasRefusal }, unknownWords)
    return this.queue.rest(end) + this.writer.end(end)
  }

  failure(error: GatewayError): string {
    return this.writer.failed(error)
  }

  private delta(delta: Members): string {
    const refusal = refusalIn(delta)
    if (refusal !== '') this.refuse()
    let frames = this.queue.said('reasoning', thoughtsIn(delta)) + this.queue.said('text', contentIn(delta))
    frames += this.queue.said('refusal', refusal)
    // Calls of a refused turn are not handed on.
    for (const call of callsIn(delta)) if (!this.hasRefusal) frames += this.queue.call(call)
    return frames
  }

  private refuse(): void {
    this.hasRefusal = true
    this.queue.dropWaitingCalls()
  }
}

/** Items of the response. */
class ItemSink implements AnswerSink<Kind> {
  /** Of the open reasoning item, for its seal. */
  private thoughts = ''
  private readonly callIds: AnswerCallIds

  constructor(
    private readonly writer: ResponseEventWriter,
    private readonly context: ResponseContext,
  ) {
    this.callIds = new AnswerCallIds(context.envelope.ids)
  }

  said(kind: Kind, text: string): string {
    if (kind === 'text') return this.writer.text(text)
    return kind === 'refusal' ? this.writer.refusal(text) : this.reasoning(text)
  }

  called({ isCustom, name, id }: ArrivingCall, ordinal: number): string {
    if (name === undefined) throw malformedResponse('The upstream called a tool without a name.')
    return this.writer.call({ isCustom, name, callId: this.callIds.next(id, ordinal) })
  }

  input(text: string): string {
    return this.writer.callDelta(text)
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
