import type { Units } from '../common/http/call.js'
import type { Allowance, TokensAndAudio } from '../common/limits/allowance.js'
import { tokensAndAudio } from '../common/limits/settlement.js'
import { APPEND } from '../common/realtime-dialect/client-append.js'
import type { ClientEvent } from '../common/realtime-dialect/client-events.js'
import { FrameScan } from '../common/realtime-dialect/frame-scan.js'
import { countedUnits } from '../common/usage/counted-units.js'
import type { UsageEntry } from '../common/usage/usage-recorder.js'
import { HEARD_TOKENS_PER_SECOND, SPOKEN_TOKENS_PER_SECOND } from './audio-rates.js'
import type { RealtimeError } from './error-event.js'

/** What makes the upstream work; everything else goes on while a limit is used up. */
const WORK: ReadonlySet<string> = new Set(['response.create', APPEND])

/** Debits what a session uses to the limits of its key, as it goes. */
export class SessionSpending {
  private hasAnswers = false

  constructor(private readonly allowance: Allowance | undefined) {}

  note(kind: UsageEntry['kind'], units: Units): void {
    if (kind === 'response') this.hasAnswers = true
    this.allowance?.spend(kind === 'response' ? usedByAnswer(units) : this.usedByTranscription(units))
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

/** Keeps a session from work for which its key has nothing left in this minute. */
export class SpentGuard {
  /** Audio comes many times a second: only the first append refused in a window is answered. */
  private toldUntilMs = -Infinity

  constructor(private readonly allowance: Allowance | undefined) {}

  judge({ type, frame }: ClientEvent): SpentVerdict {
    if (this.allowance === undefined || !WORK.has(type)) return 'forward'
    const spent = this.allowance.spentLimit()
    if (spent === undefined) return 'forward'
    if (type === APPEND && performance.now() < this.toldUntilMs) return 'drop'
    if (type === APPEND) this.toldUntilMs = spent.endsAtMs
    const eventId = FrameScan.of(frame)?.text('event_id')
    return { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: spent.message, eventId }
  }
}
