import type { IncomingMessage } from 'node:http'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MEGABYTE = 1_000_000
/** For what happens before the first byte. */
const LOOK_EVERY_MS = 500
/** Every look is a full collection of a heap that holds the whole test process: it may take a tenth of the time. */
const REST_PER_LOOK = 9
const LOOK_EVERY_BYTES = 16 * MEGABYTE

/** Gateway, simulator, proxy and reader share one process; where the core is shared, each is at times far ahead of the next. */
export const HELD_GROWTH_BYTES = 64 * MEGABYTE

export interface Reading {
  readonly bytes: number
  /** The largest growth of what the whole process held on to meanwhile. */
  readonly growthBytes: number
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Memory in use after a garbage collection: the rest is referenced. (RSS shows when the engine last cleaned up.) */
export function heldBytes(): number {
  collectGarbage()
  const { used_heap_size: heapBytes, external_memory: externalBytes } = getHeapStatistics()
  return heapBytes + externalBytes
}

/** Asks, reads to the end, and looks at the memory held all the while. */
export async function readWatching(open: () => Promise<IncomingMessage>): Promise<Reading> {
  const baseline = heldBytes()
  let growthBytes = 0
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    clearTimeout(timer)
    const beganAtMs = performance.now()
    growthBytes = Math.max(growthBytes, heldBytes() - baseline)
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
