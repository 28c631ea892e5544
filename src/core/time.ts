import { setTimeout as pause } from 'node:timers/promises'

/** In milliseconds; a timer for longer ends at once. */
export const MAXIMUM_TIMER_MS = 2_147_483_647

/** The process's own clock, which cannot be set; for tests, another one. */
export type Clock = () => number

/** Seconds since 1970, as objects of APIs say when they were made. */
export const nowSeconds = (): number => Math.floor(Date.now() / 1000)

export const processClock: Clock = () => performance.now()

/** Waits for work that never rejects, but no longer than that. Whether it was over in time. */
export async function settledWithin(work: Promise<void>, milliseconds: number): Promise<boolean> {
  const timer = new AbortController()
  const late = pause(milliseconds, false, { signal: timer.signal }).catch(() => false)
  const isOver = await Promise.race([work.then(() => true), late])
  timer.abort()
  return isOver
}
