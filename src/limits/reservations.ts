import type { ExpectedUse, TokensAndAudio } from '../core/quota.js'
import type { LimitAccount, ReservedName } from './limit-account.js'
import type { Addition, Soon } from './limit-windows.js'

/** The tokens and the seconds that one call has reserved, and what becomes of them. */
export class CallReservation {
  private tokensAsked = 0
  private secondsAsked = 0
  private tokens: Addition | undefined
  private seconds: Addition | undefined

  constructor(private readonly account: LimitAccount) {}

  get hasAudio(): boolean {
    return this.seconds !== undefined
  }

  asked(name: ReservedName): number {
    return name === 'tokensPerMinute' ? this.tokensAsked : this.secondsAsked
  }

  /**
   * Which limit is less than what is asked for, so that no minute has room for it. What is guessed has room in an empty
   * one, however much it is.
   */
  plan(
    { tokens = 0, audioSeconds = 0, unboundedAnswers = 0, isGuess = false }: ExpectedUse,
    expectedOutputTokens: number,
  ): ReservedName | undefined {
    const { tokensPerMinute = Infinity, audioSecondsPerMinute = Infinity } = this.account.limits
    this.secondsAsked = isGuess ? Math.min(audioSecondsPerMinute, audioSeconds) : audioSeconds
    this.tokensAsked = isGuess ? Math.min(tokensPerMinute, tokens) : tokens
    if (this.tokensAsked > tokensPerMinute) return 'tokensPerMinute'
    if (this.secondsAsked > audioSecondsPerMinute) return 'audioSecondsPerMinute'
    this.tokensAsked = Math.min(tokensPerMinute, this.tokensAsked + unboundedAnswers * expectedOutputTokens)
    return undefined
  }

  /** Reserves what was planned; undefined where there is nothing to wait for. */
  make(): Promise<void> | undefined {
    const tokens = this.add('tokensPerMinute', this.tokensAsked)
    const seconds = this.add('audioSecondsPerMinute', this.secondsAsked)
    if (!(tokens instanceof Promise) && !(seconds instanceof Promise)) {
      this.tokens = tokens
      this.seconds = seconds
      return undefined
    }
    return Promise.all([tokens, seconds]).then((additions) => {
      ;[this.tokens, this.seconds] = additions
    })
  }

  /** The limit that had no room. */
  get refused(): ReservedName | undefined {
    if (this.tokens?.fits === false) return 'tokensPerMinute'
    return this.seconds?.fits === false ? 'audioSecondsPerMinute' : undefined
  }

  /** Points in the open window that allows so many: in none that is over, nor in one that stood in for it meanwhile. */
  held(name: ReservedName, allowed: number): number {
    const addition = name === 'tokensPerMinute' ? this.tokens : this.seconds
    if (addition === undefined || addition.allowed !== allowed || addition.endsAtMs <= performance.now()) return 0
    return addition.counted
  }

  /** A unit whose use is not known stays as it was reserved. What was reserved is settled once. */
  settle({ tokens, audioSeconds }: TokensAndAudio): void {
    if (tokens !== undefined) this.account.settle('tokensPerMinute', this.tokens, tokens)
    if (audioSeconds !== undefined) this.account.settle('audioSecondsPerMinute', this.seconds, audioSeconds)
    this.tokens = undefined
    this.seconds = undefined
  }

  private add(name: ReservedName, amount: number): Soon<Addition | undefined> {
    return amount > 0 ? this.account.add(name, amount) : undefined
  }
}
