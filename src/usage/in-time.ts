import { setTimeout as pause } from 'node:timers/promises'

/** Waits for work that never rejects, but no longer than that. */
export async function inTime(work: Promise<void>, milliseconds: number): Promise<void> {
  const timer = new AbortController()
  const late = pause(milliseconds, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([work, late])
  timer.abort()
}
