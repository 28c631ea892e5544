import { FrameScan } from '../core/json-spans.js'
import type { Quota, EstimatedUse, TokensAndAudio, ReservationRefusal, Reservation } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits, type ResponseUsage } from '../core/usage-record.js'
import { APPEND, type ClientEvent } from '../dialects/realtime/client-events.js'
import type { SessionKind } from '../dialects/realtime/dialect.js'
import { type MaybePromise, WINDOW_SECONDS } from '../limits/counters.js'
import { tokensAndAudio } from '../limits/reservations.js'
import { INPUT_TOKENS_PER_SECOND, OUTPUT_TOKENS_PER_SECOND } from './response-estimate.js'
import type { RealtimeError } from './session-endings.js'

/** More responses than an upstream runs for one session; beyond it the oldest reservation is released. */
const MAXIMUM_RESPONSES = 32

const WINDOW_MS = 1000 * WINDOW_SECONDS

const NO_USE: TokensAndAudio = { tokens: 0, audioSeconds: 0 }

/** Error code of upstreams for a response requested while another one is under way. */
const HAS_ACTIVE_RESPONSE = 'conversation_already_has_active_response'

/** `response`, or a field of it; not `response_id`, which names a response to cancel. */
const RESPONSE_FIELD = /^response(?:[.[]|$)/

/** Reservation of a key without limits. */
const UNLIMITED: Reservation = { refusal: undefined, settle: () => undefined }

interface OpenResponse {
  readonly reservation: MaybePromise<Reservation>
  /** Id of the event that requested it. */
  readonly eventId: string | undefined
  readonly requestedAtMs: number
  isBegun: boolean
  /** The upstream's id, once the response has begun. */
  id: string | undefined
}

/**
 * The responses under way in one session, from request to end, and their reservations in the key's limits. Upstreams
 * take events in order: the oldest requested response is the next to begin.
 */
export class ResponseReservations {
  /** Oldest first. */
  private readonly responses: OpenResponse[] = []

  constructor(private readonly quota: Quota | undefined) {}

  /** Whether no response is requested or under way, as far as upstream events show it. */
  isEmpty(): boolean {
    this.forgetLost()
    return this.responses.length === 0
  }

  /** Reserves for a requested response. Returns the refusal, or undefined when the limits allow it. */
  tryReserve(estimate: () => EstimatedUse, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined> {
    const reservation = this.reserve(estimate)
    if (!(reservation instanceof Promise)) return this.track(reservation, eventId)
    return reservation.then((reserved) => this.track(reserved, eventId))
  }

  /** A response has begun. One that the upstream starts by itself cannot be refused: it is reserved where there is room. */
  begin(estimate: () => EstimatedUse, id?: string): void {
    this.forgetLost()
    const response =
      this.responses.find(({ isBegun }) => !isBegun) ??
      this.add({ reservation: this.reserve(estimate), eventId: undefined })
    response.isBegun = true
    response.id = id
  }

  /** A response has ended, with that use. */
  end(use: TokensAndAudio = NO_USE, id?: string): void {
    const index = this.responses.findIndex((response) => response.isBegun && response.id === id)
    // An upstream may have sent no event for its beginning.
    const response = this.takeOut(Math.max(0, index))
    if (response === undefined) this.quota?.consume(use)
    else settle(response, use)
  }

  /** The `error` of an upstream event, which may be the only reply to a requested response. */
  reject({ event_id: eventId, code, param }: Readonly<Record<string, unknown>>): void {
    const isAboutResponse = code === HAS_ACTIVE_RESPONSE || (typeof param === 'string' && RESPONSE_FIELD.test(param))
    const isNamed = typeof eventId === 'string'
    if (!isNamed && !isAboutResponse) return
    const index = this.responses.findIndex(
      (response) => !response.isBegun && (!isNamed || response.eventId === eventId),
    )
    if (index >= 0) this.giveBack(index)
  }

  private reserve(estimate: () => EstimatedUse): MaybePromise<Reservation> {
    return this.quota?.reserve(estimate()) ?? UNLIMITED
  }

  private track(reserved: Reservation, eventId: string | undefined): ReservationRefusal | undefined {
    this.forgetLost()
    if (reserved.refusal === undefined) this.add({ reservation: reserved, eventId })
    return reserved.refusal
  }

  private add(requested: Pick<OpenResponse, 'reservation' | 'eventId'>): OpenResponse {
    const response: OpenResponse = { ...requested, requestedAtMs: performance.now(), isBegun: false, id: undefined }
    this.responses.push(response)
    if (this.responses.length > MAXIMUM_RESPONSES) this.giveBack(0)
    return response
  }

  /** A response that has not begun within a window never will, and must not be matched with the next one. */
  private forgetLost(): void {
    const sinceMs = performance.now() - WINDOW_MS
    for (let index = this.responses.length - 1; index >= 0; index--) {
      const response = this.responses[index]
      if (response !== undefined && !response.isBegun && response.requestedAtMs < sinceMs) this.giveBack(index)
    }
  }

  private giveBack(index: number): void {
    const response = this.takeOut(index)
    if (response !== undefined) settle(response, NO_USE)
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
  void reservation.then((reserved) => {
    reserved.settle(use)
  })
}

const CREATE = 'response.create'

/** Sent audio is charged by the second: it comes in many small pieces, and each charge may be one of Redis. */
const LEAST_CHARGED_SECONDS = 1

/** Consumes the key's quota for what a session uses. */
export class SessionUsageLimits {
  readonly responses: ResponseReservations
  private hasResponses = false
  private unchargedSeconds = 0

  constructor(
    private readonly quota: Quota | undefined,
    private readonly kind: SessionKind,
  ) {
    this.responses = new ResponseReservations(quota)
  }

  /**
   * Charges the audio of a transcription session as it is sent: an upstream may write before the client has committed it, and
   * several sessions must not send more than their key has before the first is billed.
   */
  chargeSentAudio(seconds: number): void {
    if (this.kind !== 'transcription') return
    this.unchargedSeconds += seconds
    if (this.unchargedSeconds >= LEAST_CHARGED_SECONDS) this.chargeRest()
  }

  /** The session is over. */
  chargeRest(): void {
    const { unchargedSeconds: audioSeconds } = this
    this.unchargedSeconds = 0
    if (audioSeconds > 0) this.quota?.consume({ audioSeconds })
  }

  get isLimited(): boolean {
    return this.quota !== undefined
  }

  /** `responseId`: of the response that the units belong to. */
  record(kind: ResponseUsage['kind'], units: Units, responseId?: string): void {
    if (kind === 'response') {
      this.hasResponses = true
      this.responses.end(usedByResponse(units), responseId)
    } else {
      this.quota?.consume(this.usedByTranscription(units))
    }
  }

  /** Transcription reads the audio that responses read, or that was charged when it was sent. Some models report tokens alone. */
  private usedByTranscription(units: Units): TokensAndAudio {
    const { tokens, audioSeconds } = tokensAndAudio(units)
    if (this.kind === 'transcription' || this.hasResponses || !this.responses.isEmpty()) return { tokens }
    const { audioInputTokens } = countedUnits(units)
    const heardSeconds = audioInputTokens === undefined ? undefined : audioInputTokens / INPUT_TOKENS_PER_SECOND
    return { tokens, audioSeconds: audioSeconds ?? heardSeconds }
  }
}

/** Cached audio was counted in an earlier turn. */
function usedByResponse(units: Units): TokensAndAudio {
  const { audioInputTokens = 0, cachedAudioTokens = 0, audioOutputTokens = 0 } = countedUnits(units)
  return {
    tokens: tokensAndAudio(units).tokens,
    audioSeconds:
      Math.max(0, audioInputTokens - cachedAudioTokens) / INPUT_TOKENS_PER_SECOND +
      audioOutputTokens / OUTPUT_TOKENS_PER_SECOND,
  }
}

/** What to do with a client event: forward it, drop it, or send this error instead. */
export type LimitDecision = 'forward' | 'drop' | RealtimeError

/** Reserves for the response that an event requests. Returns the refusal, or undefined. */
export interface ResponseReserver {
  tryReserve(create: Buffer, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined>
}

/** Refuses client events that cause upstream use while the key's limits are exhausted; forwards all others. */
export class SessionLimitGuard {
  /** Audio arrives many times a second: only the first append refused in a window gets an error event. */
  private reportedUntilMs = -Infinity

  constructor(
    private readonly quota: Quota | undefined,
    private readonly reserver: ResponseReserver,
  ) {}

  /** Asynchronous only for a response whose limits are counted in Redis. */
  check({ type, frame }: ClientEvent): MaybePromise<LimitDecision> {
    if (type === CREATE) return this.checkCreate(frame)
    return type === APPEND ? this.checkAppend(frame) : 'forward'
  }

  private checkCreate(frame: Buffer): MaybePromise<LimitDecision> {
    const eventId = eventIdOf(frame)
    const refusal = this.reserver.tryReserve(frame, eventId)
    if (!(refusal instanceof Promise)) return this.decide(refusal, eventId)
    return refusal.then((refused) => this.decide(refused, eventId))
  }

  private checkAppend(frame: Buffer): LimitDecision {
    const exhausted = this.quota?.exhaustedLimit()
    if (exhausted === undefined) return 'forward'
    if (performance.now() < this.reportedUntilMs) return 'drop'
    this.reportedUntilMs = exhausted.endsAtMs
    return this.decide(exhausted, eventIdOf(frame))
  }

  private decide(refusal: ReservationRefusal | undefined, eventId: string | undefined): LimitDecision {
    if (refusal === undefined) return 'forward'
    this.quota?.countRefusal(refusal.limit)
    return { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: refusal.message, eventId }
  }
}

const eventIdOf = (frame: Buffer): string | undefined => FrameScan.of(frame)?.text('event_id')
