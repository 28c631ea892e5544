import type { KeyLimits } from '../config/settings.js'

export type LimitName = keyof KeyLimits

/** Limits counted in windows of one minute. */
export type MinuteLimitName = Exclude<LimitName, 'concurrency' | 'realtimeSessions'>

/** Limits of what is under way at one time. */
export type ConcurrencyLimitName = 'concurrency' | 'realtimeSessions'

interface MinuteLimit {
  /** In the names of the rate limit headers. */
  readonly headerWord: string
  /** In sentences. */
  readonly words: string
  /** Points that one unit of the setting is counted as: windows count whole points, audio is finer than a second. */
  readonly pointsPerUnit: number
}

export const MINUTE_LIMITS: Readonly<Record<MinuteLimitName, MinuteLimit>> = {
  requestsPerMinute: { headerWord: 'requests', words: 'requests per minute', pointsPerUnit: 1 },
  tokensPerMinute: { headerWord: 'tokens', words: 'tokens per minute', pointsPerUnit: 1 },
  audioSecondsPerMinute: { headerWord: 'audio-seconds', words: 'seconds of audio per minute', pointsPerUnit: 1000 },
}

export const MINUTE_LIMIT_NAMES = Object.keys(MINUTE_LIMITS) as MinuteLimitName[]

export const CONCURRENCY_LIMITS: Readonly<Record<ConcurrencyLimitName, { readonly words: string }>> = {
  concurrency: { words: 'requests at once' },
  realtimeSessions: { words: 'realtime sessions at once' },
}

export const CONCURRENCY_LIMIT_NAMES = Object.keys(CONCURRENCY_LIMITS) as ConcurrencyLimitName[]

/** Every limit there is, in the order in which they are shown. */
export const LIMIT_NAMES: readonly LimitName[] = [...MINUTE_LIMIT_NAMES, ...CONCURRENCY_LIMIT_NAMES]

/** The key under which a limit of a caller is counted. */
export const counterKey = (name: LimitName, scope: string): string => `${name}:${scope}`

/** What one of several separate processes may use of a limit: at least 1, or no request could be served. */
export const shareOf = (limit: number, share: number): number => Math.max(1, Math.floor(limit * share))

/** What a call uses, or is expected to use: prompt and completion together, audio heard and spoken. */
export interface TokensAndAudio {
  readonly tokens?: number | undefined
  readonly audioSeconds?: number | undefined
}

/** What a call is expected to use. */
export interface EstimatedUse extends TokensAndAudio {
  /** Of which it does not say how long they may be; `tokens` holds nothing of them. */
  readonly unboundedResponses?: number | undefined
  /** Nothing tells the amounts: they are taken for a whole limit at most, as a guess must make nothing impossible. */
  readonly isGuess?: boolean
}

/** What the limits of a caller's key leave for one call. Calls whose caller has no limits have none of it. */
export interface Quota {
  /**
   * Reserves what the call is expected to use, before its upstream is called; only the first of several expectations
   * counts. Throws, or rejects with, `rate_limited` when it does not fit into what is left of a minute. Undefined where
   * there is nothing to wait for.
   */
  reserveEstimate(use: EstimatedUse): Promise<void> | undefined
  /**
   * Reserves what one piece of a session's work is expected to use. It is a guess, so never more than a whole limit. Never
   * rejects. A call that reserves or spends so is not settled by its usage when it is over; what it still holds then is
   * given back.
   */
  reserve(use: EstimatedUse): Reservation | Promise<Reservation>
  /** Debits what a session has used so far. */
  consume(use: TokensAndAudio): void
  /**
   * The limit that this call has nothing left of for the moment, as far as this process knows. What its own work has
   * only reserved is left.
   */
  exhaustedLimit(): ExhaustedLimit | undefined
  /** Counts one piece of a session's work as refused because of that limit; to be called where its caller gets the refusal. */
  countRefusal(limit: LimitName): void
}

/** What one piece of a session's work has reserved. */
export interface Reservation {
  /** Why it does not fit into what is left of a minute; nothing is reserved then. */
  readonly refusal: ReservationRefusal | undefined
  /** To be called once: what was too much goes back, what was too little, or was not reserved at all, is debited. */
  settle(use: TokensAndAudio): void
}

/** Why a piece of a session's work is not to be begun. */
export interface ReservationRefusal {
  readonly limit: LimitName
  /** For people: names the limit, whose it is, its value and when it is reset. */
  readonly message: string
}

/** A limit per minute that is used up. */
export interface ExhaustedLimit extends ReservationRefusal {
  /** On the performance clock. */
  readonly endsAtMs: number
}

/** The bytes that one request holds in memory, counted among those of all; implemented where all are counted. */
export interface MemoryLease {
  /** Takes bytes until they are given back or the request is over; false when there is no room for them. */
  take(bytes: number): boolean
  /** Takes bytes that cannot be refused any more, as an answer that was paid for. */
  add(bytes: number): void
  /** Gives back what the request holds, at most this much of it. */
  giveBack(bytes: number): void
  /**
   * Room for a body that is on its way, of `announcedBytes` where its length is known and never more than
   * `maximumBytes`; undefined when there is none.
   */
  reserve(announcedBytes: number | undefined, maximumBytes: number): ArrivingBody | undefined
  /** Gives everything back; nothing is taken any more. */
  close(): void
  /** A lease of its own for work that another request has begun and may outlive it, counted for the same caller. */
  fork(): MemoryLease
}

/** The room of a body that is on its way. */
export interface ArrivingBody {
  /** Bytes have come; false when there is no room for them. What comes beyond the maximum is not kept, nor counted. */
  arrived(bytes: number): boolean
  /** Nothing more comes. What is kept in memory from here on, `keptBytes`, counts until the request is over. */
  end(keptBytes?: number): void
}
