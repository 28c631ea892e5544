import { totalmem } from 'node:os'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { MemoryReading } from './memory-load.js'

/** What this process uses, and may use now as one of so many. Costs a few microseconds. */
export function readProcessMemory(workers: number): MemoryReading {
  const { used_heap_size: heapBytes, heap_size_limit: heapLimitBytes } = getHeapStatistics()
  return {
    residentBytes: process.memoryUsage.rss(),
    availableBytes: availableBytes() / workers,
    heapBytes,
    heapLimitBytes,
  }
}

/** Outside of a container the limit is absent, 0 or larger than any machine. */
function availableBytes(): number {
  const machineBytes = totalmem()
  const containerBytes = process.constrainedMemory()
  return containerBytes > 0 ? Math.min(containerBytes, machineBytes) : machineBytes
}

let collector: (() => void) | undefined

/** Collects all garbage: buffers of ended requests count as used until then. Stops everything for a moment. */
export function collectGarbage(): void {
  if (collector === undefined) {
    // The engine hands it out to new contexts only, and only while this flag is set.
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
    setFlagsFromString('--no-expose-gc')
  }
  collector()
}
