export interface MemoryWatermarks {
  /** Absent = what the machine or its container has, without what documents may use. */
  readonly memoryBytes?: number
  /** Of processes beside this one; absent = none read documents. */
  readonly documentsBytes?: number
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
    const { memoryBytes, documentsBytes = 0 } = this.watermarks()
    const usableBytes = memoryBytes ?? memoryBesideDocuments(availableBytes, documentsBytes)
    return Math.max(residentBytes / usableBytes, heapBytes / heapLimitBytes)
  }
}

/** A gateway with the embedded store needs about half of it to serve at all. */
const LEAST_USABLE_BYTES = 1_073_741_824

/**
 * What a process may use where the processes that read documents have the same memory: the kernel would otherwise end
 * some process before anybody is refused. On small machines documents are not kept room for, as nobody may send any.
 */
export const memoryBesideDocuments = (availableBytes: number, documentsBytes: number): number =>
  Math.min(availableBytes, Math.max(availableBytes - documentsBytes, LEAST_USABLE_BYTES))
