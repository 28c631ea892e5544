export interface MemoryWatermarks {
  /** Absent = what the machine or its container has. */
  readonly memoryBytes?: number
  readonly memoryHighShare: number
  readonly memoryLowShare: number
}

/** What the process uses and may use, in bytes. */
export interface MemoryReading {
  readonly residentBytes: number
  readonly availableBytes: number
  readonly heapBytes: number
  /** Beyond it the engine ends the process. */
  readonly heapLimitBytes: number
}

/** A collection stops everything for a moment, so it is asked for no more often than this. */
const COLLECTION_INTERVAL_MS = 10_000

/**
 * Says when memory runs out: of the process as its machine or container sees it, or of its JavaScript heap. What is
 * used includes what is garbage already, so that is collected before anybody is refused for it.
 */
export class MemoryLoad {
  #isHigh = false
  #share = 0
  #collectedAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly watermarks: () => MemoryWatermarks,
    private readonly read: () => MemoryReading,
    private readonly collect: () => void,
  ) {}

  /** From the high watermark on, until the low one is reached again. */
  get isHigh(): boolean {
    return this.#isHigh
  }

  /** What is used of what there is, 0 to 1: of the process or of the heap, whichever is fuller. */
  get share(): number {
    return this.#share
  }

  look(nowMs: number): void {
    const { memoryHighShare, memoryLowShare } = this.watermarks()
    const limit = this.#isHigh ? memoryLowShare : memoryHighShare
    this.#share = this.#measure()
    if (this.#share > limit && nowMs - this.#collectedAtMs >= COLLECTION_INTERVAL_MS) {
      this.#collectedAtMs = nowMs
      this.collect()
      this.#share = this.#measure()
    }
    this.#isHigh = this.#share > limit
  }

  #measure(): number {
    const { residentBytes, availableBytes, heapBytes, heapLimitBytes } = this.read()
    return Math.max(residentBytes / (this.watermarks().memoryBytes ?? availableBytes), heapBytes / heapLimitBytes)
  }
}
