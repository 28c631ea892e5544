import { FrameScan } from '../core/json-spans.js'
import type { Quota, EstimatedUse, TokensAndAudio, ReservationRefusal, Reservation } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits, type ResponseUsage } from '../core/usage-record.js'
import { APPEND, type ClientEvent } from '../dialects/realtime/client-events.js'
import { type MaybePromise, WINDOW_SECONDS } from '../limits/counters.js'
import { tokensAndAudio } from '../limits/reservations.js'
import { HEARD_TOKENS_PER_SECOND, SPOKEN_TOKENS_PER_SECOND } from './response-estimate.js'
import type { RealtimeError } from './session-endings.js'

/** More than an upstream works at for one session; beyond it the oldest gives back what it holds. */
const MAXIMUM_RESPONSES = 32

const WINDOW_MS = 1000 * WINDOW_SECONDS

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }

/** What an upstream says where a client asks for an answer while another one is under way. */
const HAS_ANSWER = 'conversation_already_has_active_response'

/** `response`, or a field of it; not `response_id`, which a client names where it cancels one. */
const ANSWERS_FIELD = /^response(?:[.[]|$)/

/** Of a key without limits. */
const UNLIMITED: Reservation = { refusal: undefined, settle: () => undefined }

interface OpenResponse {
  readonly reservation: MaybePromise<Reservation>
  /** Of the event that asked for it. */
  readonly eventId: string | undefined
  readonly requestedAtMs: number
  isBegun: boolean
  /** The upstream's, from its beginning on. */
  id: string | undefined
}

/**
 * The answers under way in one session, each from the event that asks for it to its end, and what they hold of its key's
 * limits. Upstreams take events in order, so that of those asked for the oldest is the next to begin; for the sums it does
 * not matter.
 */
export class ResponseReservations {
  /** The oldest first. */
  private readonly responses: OpenResponse[] = []

  constructor(private readonly quota: Quota | undefined) {}

  /** Whether none is asked for or has begun, as far as the upstream says what becomes of them. */
  isEmpty(): boolean {
    this.forgetLost()
    return this.responses.length === 0
  }

  /** Reserves for an answer that the client asks for. Why it may not have it; undefined where it may. */
  ask(expected: () => EstimatedUse, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined> {
    const reservation = this.reserve(expected)
    if (!(reservation instanceof Promise)) return this.requested(reservation, eventId)
    return reservation.then((made) => this.requested(made, eventId))
  }

  /** One has begun. What the upstream begins by itself cannot be refused: it is reserved where there is room. */
  begin(expected: () => EstimatedUse, id?: string): void {
    this.forgetLost()
    const answer =
      this.responses.find(({ isBegun }) => !isBegun) ??
      this.add({ reservation: this.reserve(expected), eventId: undefined })
    answer.isBegun = true
    answer.id = id
  }

  /** One has ended, and has used that much. */
  end(use: TokensAndAudio = NOTHING, id?: string): void {
    const index = this.responses.findIndex((answer) => answer.isBegun && answer.id === id)
    // Some upstream may never have said that it begins.
    const answer = this.takeOut(Math.max(0, index))
    if (answer === undefined) this.quota?.consume(use)
    else settle(answer, use)
  }

  /** The `error` of an event of the upstream, which may be all that becomes of an answer that was asked for. */
  reject({ event_id: eventId, code, param }: Readonly<Record<string, unknown>>): void {
    const isOfAnswers = code === HAS_ANSWER || (typeof param === 'string' && ANSWERS_FIELD.test(param))
    const isNamed = typeof eventId === 'string'
    if (!isNamed && !isOfAnswers) return
    const index = this.responses.findIndex((answer) => !answer.isBegun && (!isNamed || answer.eventId === eventId))
    if (index >= 0) this.giveBack(index)
  }

  private reserve(expected: () => EstimatedUse): MaybePromise<Reservation> {
    return this.quota?.reserve(expected()) ?? UNLIMITED
  }

  private requested(made: Reservation, eventId: string | undefined): ReservationRefusal | undefined {
    this.forgetLost()
    if (made.refusal === undefined) this.add({ reservation: made, eventId })
    return made.refusal
  }

  private add(asked: Pick<OpenResponse, 'reservation' | 'eventId'>): OpenResponse {
    const answer: OpenResponse = { ...asked, requestedAtMs: performance.now(), isBegun: false, id: undefined }
    this.responses.push(answer)
    if (this.responses.length > MAXIMUM_RESPONSES) this.giveBack(0)
    return answer
  }

  /** What has not begun for as long as a window lasts never will; the next one must not be taken for it. */
  private forgetLost(): void {
    const sinceMs = performance.now() - WINDOW_MS
    for (let index = this.responses.length - 1; index >= 0; index--) {
      const answer = this.responses[index]
      if (answer !== undefined && !answer.isBegun && answer.requestedAtMs < sinceMs) this.giveBack(index)
    }
  }

  private giveBack(index: number): void {
    const answer = this.takeOut(index)
    if (answer !== undefined) settle(answer, NOTHING)
  }

  private takeOut(index: number): OpenResponse | undefined {
    return this.responses.splice(index, 1)[0]
  }
}

function settle({ reservation }: OpenResponse, use: TokensAndAudio): void {
  if (!(reservation instanceof Promise)) {
    reservation.settle(use)
    return
  }
  void reservation.then((made) => {
    made.settle(use)
  })
}

const CREATE = 'response.create'

/** Debits what a session uses to the limits of its key, as it goes. */
export class SessionUsageLimits {
  readonly responses: ResponseReservations
  private hasResponses = false

  constructor(private readonly quota: Quota | undefined) {
    this.responses = new ResponseReservations(quota)
  }

  get isLimited(): boolean {
    return this.quota !== undefined
  }

  /** `answerId`: of the answer that these units are of. */
  record(kind: ResponseUsage['kind'], units: Units, answerId?: string): void {
    if (kind === 'response') {
      this.hasResponses = true
      this.responses.end(usedByResponse(units), answerId)
    } else {
      this.quota?.consume(this.usedByTranscription(units))
    }
  }

  /** What is written down beside answers is heard by these already. */
  private usedByTranscription(units: Units): TokensAndAudio {
    const { tokens, audioSeconds } = tokensAndAudio(units)
    return this.hasResponses ? { tokens } : { tokens, audioSeconds }
  }
}

/** What the upstream has cached it heard in an earlier turn. */
function usedByResponse(units: Units): TokensAndAudio {
  const { audioInputTokens = 0, cachedAudioTokens = 0, audioOutputTokens = 0 } = countedUnits(units)
  return {
    tokens: tokensAndAudio(units).tokens,
    audioSeconds:
      Math.max(0, audioInputTokens - cachedAudioTokens) / HEARD_TOKENS_PER_SECOND +
      audioOutputTokens / SPOKEN_TOKENS_PER_SECOND,
  }
}

/** What to do with a client's event: an error is what the client is told of it instead. */
export type LimitDecision = 'forward' | 'drop' | RealtimeError

/** Reserves for an answer that an event asks for: why it may not have it, or undefined. */
export interface ResponseHandler {
  ask(create: Buffer, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined>
}

/** Keeps a session from what makes its upstream work while its key has nothing left; all else goes on. */
export class SessionLimitGuard {
  /** Audio comes many times a second: only the first append refused in a window is answered. */
  private reportedUntilMs = -Infinity

  constructor(
    private readonly quota: Quota | undefined,
    private readonly responseHandler: ResponseHandler,
  ) {}

  /** At once, but for an answer whose limits are counted elsewhere. */
  check({ type, frame }: ClientEvent): MaybePromise<LimitDecision> {
    if (type === CREATE) return this.checkCreate(frame)
    return type === APPEND ? this.checkAppend(frame) : 'forward'
  }

  /** Whether there is room is known only by whoever counts. */
  private checkCreate(frame: Buffer): MaybePromise<LimitDecision> {
    const eventId = eventIdOf(frame)
    const refusal = this.responseHandler.ask(frame, eventId)
    if (!(refusal instanceof Promise)) return this.decide(refusal, eventId)
    return refusal.then((late) => this.decide(late, eventId))
  }

  private checkAppend(frame: Buffer): LimitDecision {
    const spent = this.quota?.exhaustedLimit()
    if (spent === undefined) return 'forward'
    if (performance.now() < this.reportedUntilMs) return 'drop'
    this.reportedUntilMs = spent.endsAtMs
    return this.decide(spent, eventIdOf(frame))
  }

  private decide(refusal: ReservationRefusal | undefined, eventId: string | undefined): LimitDecision {
    if (refusal === undefined) return 'forward'
    this.quota?.countRefusal(refusal.limit)
    return { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: refusal.message, eventId }
  }
}

const eventIdOf = (frame: Buffer): string | undefined => FrameScan.of(frame)?.text('event_id')
