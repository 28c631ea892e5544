/** Retries of many deliveries that failed together must not come back together. */
const JITTER = 0.2

/** A receiver may ask for patience, not for silence. */
const MAXIMUM_RETRY_AFTER_MS = 86_400_000

/** The three forms of an HTTP date begin with a weekday; `Date.parse` alone would read almost anything. */
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)/i

export interface FailedAttempt {
  /** Attempts made, this one included. */
  readonly attempts: number
  readonly nowMs: number
  /** What the receiver asked for, counted from now. */
  readonly retryAfterMs?: number
}

/**
 * When the next attempt is due (Unix milliseconds): the schedule's delay (one for each attempt) ± 20 %, or later where the
 * receiver asks for it. undefined once the schedule is used up. `random` is uniform in [0, 1).
 */
export function nextAttemptAtMs(
  scheduleMs: readonly number[],
  { attempts, nowMs, retryAfterMs = 0 }: FailedAttempt,
  random: () => number = Math.random,
): number | undefined {
  const delayMs = scheduleMs[attempts]
  if (delayMs === undefined) return undefined
  const spreadMs = delayMs * (1 - JITTER + 2 * JITTER * random())
  return nowMs + Math.round(Math.max(spreadMs, retryAfterMs))
}

/** `Retry-After`, in seconds or as a date, as milliseconds from now: 24 hours at most, 0 when it says nothing readable. */
export function readRetryAfterMs(value: string | string[] | undefined, nowMs: number): number {
  if (typeof value !== 'string') return 0
  const text = value.trim()
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - nowMs : 0
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(waitMs, 0), MAXIMUM_RETRY_AFTER_MS)
}
