import type { KeyLimits } from '../config/settings.js'

export type LimitName = keyof KeyLimits

/** Limits counted in windows of one minute. */
export type MinuteLimitName = Exclude<LimitName, 'concurrency' | 'realtimeSessions'>

/** Limits of requests or sessions in progress at one time. */
export type ConcurrencyLimitName = 'concurrency' | 'realtimeSessions'

interface MinuteLimit {
  /** Part of the names of the rate limit headers. */
  readonly headerWord: string
  /** Used in messages. */
  readonly words: string
  /** Windows count whole points; audio is counted in milliseconds. */
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

/** The part of a limit that one of several processes may use: at least 1, or no request could be served. */
export const shareOf = (limit: number, share: number): number => Math.max(1, Math.floor(limit * share))

/** What a call uses, or is expected to use: prompt and completion together, audio heard and spoken. */
export interface TokensAndAudio {
  readonly tokens?: number | undefined
  readonly audioSeconds?: number | undefined
}

export interface EstimatedUse extends TokensAndAudio {
  /** Number of responses without a maximum length; not included in `tokens`. */
  readonly unboundedResponses?: number | undefined
  /** The amounts are guesses: reduced to the whole limit, so that a guess alone never makes a request impossible. */
  readonly isGuess?: boolean
}

/** The quota of one request within the limits of its key; absent for callers without limits. */
export interface Quota {
  /** The limit that refused the request; undefined while none has. */
  readonly refusedBy?: LimitName | undefined
  /**
   * Whether all requests of the key are refused until its minute ends. False where that depends on what ends meanwhile, or where
   * this process counts by itself because Redis is away, which may be back any moment.
   */
  readonly isUsedUp?: boolean
  /**
   * Reserves the estimated use before the upstream is called; only the first of several estimates counts. Throws, or rejects
   * with, `rate_limited` when it exceeds the remaining amount of the minute. Undefined when counted in this process.
   */
  reserveEstimate(use: EstimatedUse): Promise<void> | undefined
  /**
   * Reserves the estimated use of one response of a session. It is a guess, so never more than a whole limit. Never rejects.
   * A request that called `reserve` or `consume` is not settled by its usage when it is over; open reservations are given
   * back then.
   */
  reserve(use: EstimatedUse): Reservation | Promise<Reservation>
  /** Debits what a session has used so far. */
  consume(use: TokensAndAudio): void
  /**
   * The limit that is used up at present, as far as this process knows. The session's own open reservations do not count
   * as used.
   */
  exhaustedLimit(): ExhaustedLimit | undefined
  /** Counts a refusal within a session by that limit; called when the client gets the refusal. */
  countRefusal(limit: LimitName): void
  /** Adds what is left of the limits now to the headers of a response that is about to be written. */
  addHeaders(headers: Record<string, unknown>): void
}

/** Reservation for one response of a session. */
export interface Reservation {
  /** Set when it exceeds the remaining amount of the minute; nothing is reserved then. */
  readonly refusal: ReservationRefusal | undefined
  /** Called once: a surplus is given back, a shortfall is debited. */
  settle(use: TokensAndAudio): void
}

/** Why a response of a session is refused. */
export interface ReservationRefusal {
  readonly limit: LimitName
  /** Names the limit, its scope, its value and when it is reset. */
  readonly message: string
}

/** A limit per minute that is used up. */
export interface ExhaustedLimit extends ReservationRefusal {
  /** On the performance clock. */
  readonly endsAtMs: number
}

/** The bytes that one request holds in memory; implemented by the memory budget in `overload/`. */
export interface MemoryLease {
  /** Reserves bytes until they are given back or the request is over; false when the budget is exceeded. */
  take(bytes: number): boolean
  /** Adds bytes that can no longer be refused, such as a response that was paid for. */
  add(bytes: number): void
  /** Gives back what the request holds, at most this much of it. */
  giveBack(bytes: number): void
  /**
   * Reserves memory for a body that is being received: `announcedBytes` if its length is known, never more than
   * `maximumBytes`; undefined when the budget is exceeded.
   */
  reserve(announcedBytes: number | undefined, maximumBytes: number): ArrivingBody | undefined
  /** Gives everything back; later calls have no effect. */
  close(): void
  /** A separate lease of the same caller, for work that may outlive this request. */
  fork(): MemoryLease
}

/** Memory reserved for a body that is being received. */
export interface ArrivingBody {
  /** Called when it has lost its place to others, as it made no progress; nothing is counted for it then. */
  onEvicted: (() => void) | undefined
  /** Called for received bytes; false when the budget is exceeded. Bytes beyond the maximum are neither kept nor counted. */
  arrived(bytes: number): boolean
  /** Called at the end of the body. `keptBytes` stay in memory and count until the request is over. */
  end(keptBytes?: number): void
}
