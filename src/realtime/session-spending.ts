import { countedUnits } from '../core/counted-units.js'
import { FrameScan } from '../core/frame-scan.js'
import type { Allowance, TokensAndAudio, WorkRefusal } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import type { UsageEntry } from '../core/usage-recorder.js'
import { APPEND } from '../dialects/realtime/client-append.js'
import type { ClientEvent } from '../dialects/realtime/client-events.js'
import type { Soon } from '../limits/limit-windows.js'
import { tokensAndAudio } from '../limits/settlement.js'
import { HEARD_TOKENS_PER_SECOND, SPOKEN_TOKENS_PER_SECOND } from './audio-rates.js'
import type { RealtimeError } from './error-event.js'
import { AnswerReservations } from './session-limits.js'

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
