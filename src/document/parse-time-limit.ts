import { readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second on every machine that Node runs on. */
const TICK_MS = 10
/** A process that waits for a processor may take so many times longer by the clock. */
const CLOCK_FACTOR = 4
const SHORTEST_WAIT_MS = 10

/** User and system time of a process, of all its threads, in milliseconds; undefined where the system does not tell it. */
export function processorMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, in brackets, may hold blanks.
    const [userTicks, systemTicks] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    return ((userTicks ?? 0) + (systemTicks ?? 0)) * TICK_MS
  } catch {
    return undefined
  }
}

export interface ParseTime {
  /** Processor time that a document may take; four times as much by the clock. */
  readonly parseMs: number
  /** By the clock, whatever it has worked. */
  readonly remainingMs: number
}

/**
 * Calls `onOver` once the time of a document is over. The time of the processor counts, so that a busy machine reads the same documents
 * as an idle one; where it is not known, that of the clock does. Returns what ends the watch.
 */
export function limitParseTime(
  workedMs: () => number | undefined,
  { parseMs, remainingMs }: ParseTime,
  onOver: () => void,
): () => void {
  const startedAtMs = performance.now()
  const workedBeforeMs = workedMs()
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    const elapsedMs = performance.now() - startedAtMs
    const workedNowMs = workedMs()
    const isKnown = workedBeforeMs !== undefined && workedNowMs !== undefined
    const leftMs = Math.min(
      parseMs - (isKnown ? workedNowMs - workedBeforeMs : elapsedMs),
      CLOCK_FACTOR * parseMs - elapsedMs,
      remainingMs - elapsedMs,
    )
    if (leftMs <= 0) onOver()
    else timer = setTimeout(look, Math.max(leftMs, SHORTEST_WAIT_MS))
  }
  look()
  return () => {
    clearTimeout(timer)
  }
}
