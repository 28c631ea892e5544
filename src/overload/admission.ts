import type { AdmissionSection, GatewayConfig } from '../config/settings.js'
import { FairShare, type Sharer } from '../core/fair-share.js'
import { type Clock, processClock } from '../core/time.js'
import { MemoryBudget } from './memory-budget.js'
import { collectGarbage, EventLoopLoad, MemoryLoad, type MemoryReading, readProcessMemory } from './load-monitor.js'

/** Of one worker, and what its own processes that read documents may use beside it, in bytes. */
interface WorkerAdmission extends AdmissionSection {
  readonly documentsBytes: number
}

/**
 * What one worker goes by: memory is configured for all workers together, as that of the machine is, and each has its
 * part. All else is a matter of one event loop.
 */
export function shareOfAdmission(config: Pick<GatewayConfig, 'server' | 'admission' | 'documents'>): WorkerAdmission {
  const { admission, documents } = config
  const documentsBytes = documents.processes * documents.memoryBytes
  const workers = workersIn(config)
  if (workers === 1) return { ...admission, documentsBytes }
  const { bytesInFlight, memoryBytes } = admission
  return {
    ...admission,
    documentsBytes,
    bytesInFlight: Math.floor(bytesInFlight / workers),
    ...(memoryBytes === undefined ? {} : { memoryBytes: Math.floor(memoryBytes / workers) }),
  }
}

/** `auto` has become a number where there are several. */
export const workersIn = ({ server: { workers } }: Pick<GatewayConfig, 'server'>): number =>
  workers === 'auto' ? 1 : workers

export const REFUSAL_REASONS = ['concurrency', 'loop_delay', 'memory'] as const
export type RefusalReason = (typeof REFUSAL_REASONS)[number]

/** Served at once while memory is short: requests that end give it back, and none of them is kept waiting for ever. */
const REQUESTS_IN_SHORTAGE = 16

const MEMORY_INTERVAL_MS = 500

interface AdmissionGauges {
  readonly readMemory?: () => MemoryReading
  /** Processes that share the memory of the machine; default 1. */
  readonly workers?: number
  readonly collectGarbage?: () => void
  /** The clock of everything here. */
  readonly nowMs?: Clock
  /** For how long the event loop has worked since it was asked last, in milliseconds. */
  readonly workedMs?: () => number
}

/**
 * Decides, before any work is done for it, whether a request is let in (design: Reliability rules, Admission). The server
 * shares it with Nest, as it answers before Nest does.
 */
export class Admission {
  readonly memory: MemoryBudget
  /** Requests let in whose response is not over, open streams and sockets included. */
  readonly places: FairShare
  readonly #refused: Record<RefusalReason, number> = { concurrency: 0, loop_delay: 0, memory: 0 }
  readonly #loop: EventLoopLoad
  readonly #memoryLoad: MemoryLoad
  readonly #nowMs: Clock
  #maximum: number
  readonly #workedMs: () => number
  /** Connections that wait to be accepted; absent before the server listens. */
  acceptQueue: { readonly waitingMs: number } | undefined
  #memoryReadAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(
    private readonly settings: () => AdmissionSection,
    {
      workers = 1,
      readMemory = () => readProcessMemory(workers),
      collectGarbage: collect = collectGarbage,
      nowMs,
      workedMs = workMeter(),
    }: AdmissionGauges = {},
  ) {
    this.#nowMs = nowMs ?? processClock
    this.#workedMs = workedMs
    this.memory = new MemoryBudget(settings, this.#nowMs)
    this.#loop = new EventLoopLoad(settings, this.#nowMs())
    this.#memoryLoad = new MemoryLoad(settings, readMemory, collect)
    this.#maximum = settings().concurrentRequests
    this.places = new FairShare(() => ({ total: this.#maximum, callerShare: settings().callerShare }), this.#nowMs)
  }

  get loop(): EventLoopLoad {
    return this.#loop
  }

  get memoryLoad(): MemoryLoad {
    return this.#memoryLoad
  }

  get underWay(): number {
    return this.places.held
  }

  /** Requests refused since the start, by reason. */
  get refused(): Readonly<Record<RefusalReason, number>> {
    return this.#refused
  }

  /** Why a new request cannot be served now; undefined when it can. The refusing part calls `countRefusal`. */
  check(nowMs: number, sharer: Sharer): RefusalReason | undefined {
    if (!this.places.allows(sharer, 1)) return this.#memoryLoad.isHigh ? 'memory' : 'concurrency'
    return this.#loop.admits(nowMs, sharer) ? undefined : 'loop_delay'
  }

  countRefusal(reason: RefusalReason): void {
    this.#refused[reason]++
  }

  begin(sharer: Sharer): void {
    this.places.count(sharer, 1)
  }

  /** `bytes` have passed for the request, both ways. */
  end(sharer: Sharer, bytes: number): void {
    this.places.count(sharer, -1)
    this.#loop.countBytes(sharer, bytes)
  }

  /** Looks at the event loop and at the memory from here on. */
  start(): void {
    const { intervalMs } = this.#loop
    this.#timer = setTimeout(() => {
      this.#look(intervalMs)
      this.start()
    }, intervalMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #look(sleptMs: number): void {
    const nowMs = this.#nowMs()
    this.#loop.turned(nowMs, sleptMs, this.#workedMs(), this.acceptQueue?.waitingMs)
    if (nowMs - this.#memoryReadAtMs < MEMORY_INTERVAL_MS) return
    this.#memoryReadAtMs = nowMs
    this.#memoryLoad.sample(nowMs)
    const { concurrentRequests } = this.settings()
    this.#maximum = this.#memoryLoad.isHigh ? Math.min(concurrentRequests, REQUESTS_IN_SHORTAGE) : concurrentRequests
  }
}

/**
 * The time the event loop was not waiting for anything, and no more than the process had of processors: the loop does not
 * work while others have its processor, nor while only other threads of the process work.
 */
function workMeter(): () => number {
  let before = readWork()
  return () => {
    const now = readWork()
    const workedMs = Math.min(now.processMs - before.processMs, now.loopMs - before.loopMs)
    before = now
    return workedMs
  }
}

function readWork(): { readonly processMs: number; readonly loopMs: number } {
  const { user, system } = process.cpuUsage()
  return { processMs: (user + system) / 1000, loopMs: performance.eventLoopUtilization().active }
}
