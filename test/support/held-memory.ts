import type { IncomingMessage } from 'node:http'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MEGABYTE = 1_000_000
/** For what happens before the first byte. */
const LOOK_EVERY_MS = 500
/** Every look may be a full collection of a heap that holds the whole test process: it may take a tenth of the time. */
const REST_PER_LOOK = 9
/** Less than this, garbage included, is no sign of anything held. */
const SMALL_GROWTH_BYTES = 8 * MEGABYTE
const LOOK_EVERY_BYTES = 16 * MEGABYTE

/** Gateway, simulator, proxy and reader share one process; where the core is shared, each is at times far ahead of the next. */
export const HELD_GROWTH_BYTES = 64 * MEGABYTE

export interface Reading {
  readonly bytes: number
  /** The largest growth of what the whole process held on to meanwhile, or up to 8 MB of garbage. */
  readonly growthBytes: number
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options?: { type: 'minor' }) => void

function usedBytes(): number {
  const { used_heap_size: heapBytes, external_memory: externalBytes } = getHeapStatistics()
  return heapBytes + externalBytes
}

/** Memory in use after a garbage collection: the rest is referenced. (RSS shows when the engine last cleaned up.) */
export function heldBytes(): number {
  // The memory of array buffers that one collection has freed may be counted until the next.
  collectGarbage()
  collectGarbage()
  return usedBytes()
}

/** An upper bound of the memory held: the full collection is made only where the young generation alone does not show that it is small. */
export function heldBytesAtMost(smallBytes: number): number {
  collectGarbage({ type: 'minor' })
  const bytes = usedBytes()
  return bytes < smallBytes ? bytes : heldBytes()
}

/** Asks, reads to the end, and looks at the memory held all the while. */
export async function readWatching(open: () => Promise<IncomingMessage>): Promise<Reading> {
  const baseline = heldBytes()
  let growthBytes = 0
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    clearTimeout(timer)
    const beganAtMs = performance.now()
    const smallBytes = baseline + Math.max(growthBytes, SMALL_GROWTH_BYTES)
    growthBytes = Math.max(growthBytes, heldBytesAtMost(smallBytes) - baseline)
    timer = setTimeout(look, Math.max(LOOK_EVERY_MS, (performance.now() - beganAtMs) * REST_PER_LOOK))
  }
  look()
  let bytes = 0
  let lookedAt = 0
  try {
    for await (const chunk of (await open()) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes - lookedAt < LOOK_EVERY_BYTES) continue
      lookedAt = bytes
      look()
    }
  } finally {
    clearTimeout(timer)
  }
  return { bytes, growthBytes }
}
