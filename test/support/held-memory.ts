import type { IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MEGABYTE = 1_000_000
/** For what happens before the first byte. Every look is a full collection of a heap that holds the whole test process. */
const LOOK_EVERY_MS = 500
const LOOK_EVERY_BYTES = 16 * MEGABYTE

/** Gateway, simulator, proxy and reader share one process; each has a buffer or two in its hands. */
export const HELD_GROWTH_BYTES = 32 * MEGABYTE

export interface Reading {
  readonly bytes: number
  /** The largest growth of what the whole process held on to meanwhile. */
  readonly growthBytes: number
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Memory in use once garbage is gone: what is left is held by somebody. (RSS shows when the engine last cleaned up.) */
function heldBytes(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Asks, reads to the end, and looks at the memory held all the while. */
export async function readWatching(open: () => Promise<IncomingMessage>): Promise<Reading> {
  const baseline = heldBytes()
  let growthBytes = 0
  const look = (): void => {
    growthBytes = Math.max(growthBytes, heldBytes() - baseline)
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
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
    clearInterval(timer)
  }
  return { bytes, growthBytes }
}
