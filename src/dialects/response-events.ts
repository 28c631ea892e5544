import { framesOf, jsonOf } from '../core/sse.js'
import { DeltaCounter } from '../core/token-counter.js'
import type { RelayedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { FrameCounter, SseDialect } from '../upstream/sse-relay.js'
import { idsOf, isLastEvent, isLastLine, LAST_EVENT_MARKS, type ResponseIds } from './kept-answers.js'
import { type EndedResponse, endOf, isInBackground, usageIn } from './response-state.js'

/** Named events, LF, no `[DONE]`. */
export const RESPONSES_EVENTS: SseDialect = { completionMarks: LAST_EVENT_MARKS, errorMark: 'event: error' }

type Response = Readonly<Record<string, unknown>>

const responseIn = (frame: Buffer): Response | undefined => {
  const response = jsonOf(frame)?.['response']
  return isRecord(response) ? response : undefined
}

/**
 * Counts the answer and looks for its last event, line by line, as the relay walks through the lines anyway: a search of its own in
 * each piece costs ten times as much as all of that. Only the last event is parsed, and the first of a response that may be made in the
 * background; every frame passes untouched.
 */
export class ResponseEvents implements FrameCounter {
  private readonly deltas = new DeltaCounter()
  private hasLast = false
  private begun: ResponseIds | undefined
  private kept: ResponseIds | undefined
  private ended: EndedResponse | undefined

  constructor(
    /** Of a response in the background none is reported: that comes with its end, wherever this is seen. */
    private readonly usage: RelayedUsage,
    /** `asked`: the first event shows whether it is. */
    private background: 'no' | 'asked' | 'yes' = 'no',
  ) {}

  get count(): number {
    return this.deltas.count
  }

  get isInBackground(): boolean {
    return this.background === 'yes'
  }

  /** Whether it is known if the response is made in the background, and by which id. */
  get hasBegun(): boolean {
    return this.background !== 'asked'
  }

  checkpoint(): void {
    this.deltas.checkpoint()
  }

  rollBack(): void {
    this.deltas.rollBack()
  }

  line(bytes: Buffer, start: number, end: number): void {
    if (isLastLine(bytes, start, end)) this.hasLast = true
    else this.deltas.line(bytes, start, end)
  }

  /** Called with frames whose lines have been shown. */
  readonly filter = (frames: Buffer): Buffer => {
    if (this.background === 'asked') this.readFirst(frames)
    if (this.hasLast) this.readLast(frames)
    return frames
  }

  /** The ids of a response that is made in the background, once. */
  readonly takeBegun = (): ResponseIds | undefined => {
    const { begun } = this
    this.begun = undefined
    return begun
  }

  /** The ids of a response that was made while its caller waited, once. */
  readonly takeIds = (): ResponseIds | undefined => {
    const { kept } = this
    this.kept = undefined
    return kept
  }

  /** The end of a response that was made in the background, once. */
  readonly takeEnded = (): EndedResponse | undefined => {
    const { ended } = this
    this.ended = undefined
    return ended
  }

  private readFirst(frames: Buffer): void {
    for (const frame of framesOf(frames)) {
      const response = responseIn(frame)
      const ids = response && idsOf(response)
      if (response === undefined || ids === undefined) continue
      this.background = isInBackground(response) ? 'yes' : 'no'
      if (this.background === 'yes') this.begun = ids
      return
    }
  }

  private readLast(frames: Buffer): void {
    this.hasLast = false
    for (const frame of framesOf(frames)) {
      const response = isLastEvent(frame) ? responseIn(frame) : undefined
      if (response === undefined) continue
      if (this.isInBackground) {
        this.ended = endOf(response)
        continue
      }
      const used = usageIn(response)
      if (used !== undefined) this.usage.report(used, true)
      this.kept = idsOf(response)
    }
  }
}

/** Events by other names say that the connection is alive. */
const EVENT_NAME = /^event: ?(response\.[\w.]+)/m
const LONGEST_NAME = 64

/**
 * Whether an item of the answer has ended and no other begun: the figures come with the event that follows the last item, and an
 * event that begins another one shows that there is more to be made.
 */
export function isBetweenItems(tail: Buffer): boolean {
  let last: string | undefined
  for (const frame of framesOf(tail)) last = EVENT_NAME.exec(frame.toString('latin1', 0, LONGEST_NAME))?.[1] ?? last
  return last === 'response.output_item.done'
}
