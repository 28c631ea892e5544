import type { LimitName } from './limit-names.js'

/** What a call uses, or is expected to use: prompt and completion together, audio heard and spoken. */
export interface TokensAndAudio {
  readonly tokens?: number | undefined
  readonly audioSeconds?: number | undefined
}

/** What a call is expected to use. */
export interface ExpectedUse extends TokensAndAudio {
  /** Of which it does not say how long they may be; `tokens` holds nothing of them. */
  readonly unboundedAnswers?: number | undefined
  /** Nothing tells the amounts: they are taken for a whole limit at most, as a guess must make nothing impossible. */
  readonly isGuess?: boolean
}

/** What the limits of a caller's key leave for one call. Calls whose caller has no limits have none of it. */
export interface Allowance {
  /**
   * Reserves what the call is expected to use, before its upstream is called; only the first of several expectations
   * counts. Throws, or rejects with, `rate_limited` when it does not fit into what is left of a minute. Undefined where
   * there is nothing to wait for.
   */
  expect(use: ExpectedUse): Promise<void> | undefined
  /**
   * Reserves what one piece of a session's work is expected to use. It is a guess, so never more than a whole limit. Never
   * rejects. A call that reserves or spends so is not settled by its usage when it is over; what it still holds then is
   * given back.
   */
  reserve(use: ExpectedUse): WorkReservation | Promise<WorkReservation>
  /** Debits what a session has used so far. */
  spend(use: TokensAndAudio): void
  /**
   * The limit that this call has nothing left of for the moment, as far as this process knows. What its own work has
   * only reserved is left.
   */
  spentLimit(): SpentLimit | undefined
  /** Counts one piece of a session's work as refused because of that limit; to be called where its caller is told so. */
  noteRefusal(limit: LimitName): void
}

/** What one piece of a session's work has reserved. */
export interface WorkReservation {
  /** Why it does not fit into what is left of a minute; nothing is reserved then. */
  readonly refusal: WorkRefusal | undefined
  /** To be called once: what was too much goes back, what was too little, or was not reserved at all, is debited. */
  settle(use: TokensAndAudio): void
}

/** Why a piece of a session's work is not to be begun. */
export interface WorkRefusal {
  readonly limit: LimitName
  /** For people: names the limit, whose it is, its value and when it is reset. */
  readonly message: string
}

/** A limit per minute that is used up. */
export interface SpentLimit extends WorkRefusal {
  /** On the performance clock. */
  readonly endsAtMs: number
}
