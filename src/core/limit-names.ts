import type { KeyLimits } from '../config/access-config.js'

export type LimitName = keyof KeyLimits

/** Limits counted in windows of one minute. */
export type MinuteLimitName = Exclude<LimitName, 'concurrency' | 'realtimeSessions'>

/** Limits of what is under way at one time. */
export type HeldLimitName = 'concurrency' | 'realtimeSessions'

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

export const HELD_LIMITS: Readonly<Record<HeldLimitName, { readonly words: string }>> = {
  concurrency: { words: 'requests at once' },
  realtimeSessions: { words: 'realtime sessions at once' },
}

export const HELD_LIMIT_NAMES = Object.keys(HELD_LIMITS) as HeldLimitName[]

/** Every limit there is, in the order in which they are shown. */
export const LIMIT_NAMES: readonly LimitName[] = [...MINUTE_LIMIT_NAMES, ...HELD_LIMIT_NAMES]

/** The key under which a limit of a caller is counted. */
export const counterKey = (name: LimitName, scope: string): string => `${name}:${scope}`

/** What one of several that do not know of each other may use of a limit: at least 1, or nobody could do anything. */
export const shareOf = (limit: number, share: number): number => Math.max(1, Math.floor(limit * share))
