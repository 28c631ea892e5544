import { FrameScan } from '../core/json-spans.js'
import type { Allowance, ExpectedUse, TokensAndAudio, WorkRefusal, WorkReservation } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits, type UsageEntry } from '../core/usage-record.js'
import { APPEND, type ClientEvent } from '../dialects/realtime/client-events.js'
import { type Soon, WINDOW_SECONDS } from '../limits/counters.js'
import { tokensAndAudio } from '../limits/reservations.js'
import { HEARD_TOKENS_PER_SECOND, SPOKEN_TOKENS_PER_SECOND } from './response-estimate.js'
import type { RealtimeError } from './session-endings.js'

/** More than an upstream works at for one session; beyond it the oldest gives back what it holds. */
const MOST_ANSWERS = 32

const WINDOW_MS = 1000 * WINDOW_SECONDS

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }

/** What an upstream says where a client asks for an answer while another one is under way. */
const HAS_ANSWER = 'conversation_already_has_active_response'

/** `response`, or a field of it; not `response_id`, which a client names where it cancels one. */
const ANSWERS_FIELD = /^response(?:[.[]|$)/

/** Of a key without limits. */
const UNLIMITED: WorkReservation = { refusal: undefined, settle: () => undefined }

interface Answer {
  readonly reservation: Soon<WorkReservation>
  /** Of the event that asked for it. */
  readonly eventId: string | undefined
  readonly askedAtMs: number
  isBegun: boolean
  /** The upstream's, from its beginning on. */
  id: string | undefined
}

/**
 * The answers under way in one session, each from the event that asks for it to its end, and what they hold of its key's
 * limits. Upstreams take events in order, so that of those asked for the oldest is the next to begin; for the sums it does
 * not matter.
 */
export class AnswerReservations {
  /** The oldest first. */
  private readonly answers: Answer[] = []

  constructor(private readonly allowance: Allowance | undefined) {}

  /** Whether none is asked for or has begun, as far as the upstream says what becomes of them. */
  isEmpty(): boolean {
    this.forgetLost()
    return this.answers.length === 0
  }

  /** Reserves for an answer that the client asks for. Why it may not have it; undefined where it may. */
  ask(expected: () => ExpectedUse, eventId: string | undefined): Soon<WorkRefusal | undefined> {
    const reservation = this.reserve(expected)
    if (!(reservation instanceof Promise)) return this.asked(reservation, eventId)
    return reservation.then((made) => this.asked(made, eventId))
  }

  /** One has begun. What the upstream begins by itself cannot be refused: it is reserved where there is room. */
  begin(expected: () => ExpectedUse, id?: string): void {
    this.forgetLost()
    const answer =
      this.answers.find(({ isBegun }) => !isBegun) ??
      this.add({ reservation: this.reserve(expected), eventId: undefined })
    answer.isBegun = true
    answer.id = id
  }

  /** One has ended, and has used that much. */
  end(use: TokensAndAudio = NOTHING, id?: string): void {
    const index = this.answers.findIndex((answer) => answer.isBegun && answer.id === id)
    // Some upstream may never have said that it begins.
    const answer = this.takeOut(Math.max(0, index))
    if (answer === undefined) this.allowance?.spend(use)
    else settle(answer, use)
  }

  /** The `error` of an event of the upstream, which may be all that becomes of an answer that was asked for. */
  reject({ event_id: eventId, code, param }: Readonly<Record<string, unknown>>): void {
    const isOfAnswers = code === HAS_ANSWER || (typeof param === 'string' && ANSWERS_FIELD.test(param))
    const isNamed = typeof eventId === 'string'
    if (!isNamed && !isOfAnswers) return
    const index = this.answers.findIndex((answer) => !answer.isBegun && (!isNamed || answer.eventId === eventId))
    if (index >= 0) this.giveBack(index)
  }

  private reserve(expected: () => ExpectedUse): Soon<WorkReservation> {
    return this.allowance?.reserve(expected()) ?? UNLIMITED
  }

  private asked(made: WorkReservation, eventId: string | undefined): WorkRefusal | undefined {
    this.forgetLost()
    if (made.refusal === undefined) this.add({ reservation: made, eventId })
    return made.refusal
  }

  private add(asked: Pick<Answer, 'reservation' | 'eventId'>): Answer {
    const answer: Answer = { ...asked, askedAtMs: performance.now(), isBegun: false, id: undefined }
    this.answers.push(answer)
    if (this.answers.length > MOST_ANSWERS) this.giveBack(0)
    return answer
  }

  /** What has not begun for as long as a window lasts never will; the next one must not be taken for it. */
  private forgetLost(): void {
    const sinceMs = performance.now() - WINDOW_MS
    for (let index = this.answers.length - 1; index >= 0; index--) {
      const answer = this.answers[index]
      if (answer !== undefined && !answer.isBegun && answer.askedAtMs < sinceMs) this.giveBack(index)
    }
  }

  private giveBack(index: number): void {
    const answer = this.takeOut(index)
    if (answer !== undefined) settle(answer, NOTHING)
  }

  private takeOut(index: number): Answer | undefined {
    return this.answers.splice(index, 1)[0]
  }
}

function settle({ reservation }: Answer, use: TokensAndAudio): void {
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
export class SessionSpending {
  readonly answers: AnswerReservations
  private hasAnswers = false

  constructor(private readonly allowance: Allowance | undefined) {
    this.answers = new AnswerReservations(allowance)
  }

  get isLimited(): boolean {
    return this.allowance !== undefined
  }

  /** `answerId`: of the answer that these units are of. */
  note(kind: UsageEntry['kind'], units: Units, answerId?: string): void {
    if (kind === 'response') {
      this.hasAnswers = true
      this.answers.end(usedByAnswer(units), answerId)
    } else {
      this.allowance?.spend(this.usedByTranscription(units))
    }
  }

  /** What is written down beside answers is heard by these already. */
  private usedByTranscription(units: Units): TokensAndAudio {
    const { tokens, audioSeconds } = tokensAndAudio(units)
    return this.hasAnswers ? { tokens } : { tokens, audioSeconds }
  }
}

/** What the upstream has cached it heard in an earlier turn. */
function usedByAnswer(units: Units): TokensAndAudio {
  const { audioInputTokens = 0, cachedAudioTokens = 0, audioOutputTokens = 0 } = countedUnits(units)
  return {
    tokens: tokensAndAudio(units).tokens,
    audioSeconds:
      Math.max(0, audioInputTokens - cachedAudioTokens) / HEARD_TOKENS_PER_SECOND +
      audioOutputTokens / SPOKEN_TOKENS_PER_SECOND,
  }
}

/** What to do with a client's event: an error is what the client is told of it instead. */
export type SpentVerdict = 'forward' | 'drop' | RealtimeError

/** Reserves for an answer that an event asks for: why it may not have it, or undefined. */
export interface AnswerDesk {
  ask(create: Buffer, eventId: string | undefined): Soon<WorkRefusal | undefined>
}

/** Keeps a session from what makes its upstream work while its key has nothing left; all else goes on. */
export class SpentGuard {
  /** Audio comes many times a second: only the first append refused in a window is answered. */
  private toldUntilMs = -Infinity

  constructor(
    private readonly allowance: Allowance | undefined,
    private readonly desk: AnswerDesk,
  ) {}

  /** At once, but for an answer whose limits are counted elsewhere. */
  judge({ type, frame }: ClientEvent): Soon<SpentVerdict> {
    if (type === CREATE) return this.judgeCreate(frame)
    return type === APPEND ? this.judgeAppend(frame) : 'forward'
  }

  /** Whether there is room is known only by whoever counts. */
  private judgeCreate(frame: Buffer): Soon<SpentVerdict> {
    const eventId = eventIdOf(frame)
    const refusal = this.desk.ask(frame, eventId)
    if (!(refusal instanceof Promise)) return this.verdictOn(refusal, eventId)
    return refusal.then((late) => this.verdictOn(late, eventId))
  }

  private judgeAppend(frame: Buffer): SpentVerdict {
    const spent = this.allowance?.spentLimit()
    if (spent === undefined) return 'forward'
    if (performance.now() < this.toldUntilMs) return 'drop'
    this.toldUntilMs = spent.endsAtMs
    return this.verdictOn(spent, eventIdOf(frame))
  }

  private verdictOn(refusal: WorkRefusal | undefined, eventId: string | undefined): SpentVerdict {
    if (refusal === undefined) return 'forward'
    this.allowance?.noteRefusal(refusal.limit)
    return { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: refusal.message, eventId }
  }
}

const eventIdOf = (frame: Buffer): string | undefined => FrameScan.of(frame)?.text('event_id')
