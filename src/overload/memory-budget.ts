import { type Caller, sharerOf } from '../core/caller.js'
import { FairShare } from '../core/fair-share.js'
import type { ArrivingBody, MemoryLease } from '../core/quota.js'
import { type Clock, processClock } from '../core/time.js'

/** Bytes that one request holds. */
export interface MemoryHolder {
  readonly caller: Caller
  heldBytes: number
  /** Nothing is taken for a call that is over, as it would never be given back. */
  isOver: boolean
}

/** What is reserved ahead of the bytes that have arrived of a body, whatever length it announces: announcing costs nothing. */
const STEP_BYTES = 65_536

/** Bodies up to this length, as nearly all JSON has, find room that longer ones leave free. */
const SMALL_BYTES = 65_536
const LARGE_SHARE = 7 / 8

/** A body of which less than this arrives in that time is stalled, and loses its place to those that need it. */
const PROGRESS_BYTES = 16_384
const PROGRESS_MS = 5_000
const LOOK_INTERVAL_MS = 20

/** The reservation of a body that is being received: what has arrived, and a step ahead. */
class CountedBody implements ArrivingBody {
  onEvicted: (() => void) | undefined
  #keptBytes = 0
  #arrivedBytes = 0
  #progressBytes = 0
  #progressAtMs: number

  constructor(
    private readonly budget: Pick<MemoryBudget, 'take' | 'giveBack' | 'forget' | 'nowMs'>,
    private readonly holder: MemoryHolder,
    /** Of the body as a whole: no more than announced, and no more than is kept of any. */
    private readonly maximumBytes: number,
  ) {
    this.#progressAtMs = budget.nowMs()
  }

  /** Called once, before anything arrives; false when there is no room. */
  reserve(): boolean {
    return this.#grow(Math.min(STEP_BYTES, this.maximumBytes))
  }

  arrived(bytes: number): boolean {
    this.#noteProgress(bytes)
    this.#arrivedBytes = Math.min(this.#arrivedBytes + bytes, this.maximumBytes)
    if (this.#arrivedBytes <= this.#keptBytes) return true
    const aheadBytes = Math.min(this.#arrivedBytes + STEP_BYTES, this.maximumBytes)
    return this.#grow(aheadBytes - this.#keptBytes) || this.#grow(this.#arrivedBytes - this.#keptBytes)
  }

  end(keptBytes: number = this.#arrivedBytes): void {
    this.budget.forget(this)
    this.budget.giveBack(this.holder, Math.max(0, this.#keptBytes - keptBytes))
    this.#keptBytes = keptBytes
  }

  isStalled(nowMs: number): boolean {
    return nowMs - this.#progressAtMs > PROGRESS_MS
  }

  isOf(holder: MemoryHolder): boolean {
    return this.holder === holder
  }

  /** Counts with what has arrived. */
  giveBackStep(): void {
    this.budget.giveBack(this.holder, this.#keptBytes - this.#arrivedBytes)
    this.#keptBytes = this.#arrivedBytes
  }

  /** Ends the request that it belongs to, which gives back all it holds. */
  evict(): void {
    this.end(0)
    this.onEvicted?.()
  }

  #noteProgress(bytes: number): void {
    this.#progressBytes += bytes
    if (this.#progressBytes < PROGRESS_BYTES) return
    this.#progressBytes = 0
    this.#progressAtMs = this.budget.nowMs()
  }

  #grow(bytes: number): boolean {
    if (!this.budget.take(this.holder, bytes, this.maximumBytes)) return false
    this.#keptBytes += bytes
    return true
  }
}

interface MemoryBudgetLimits {
  readonly bytesInFlight: number
  /** Of `bytesInFlight`, what one caller may hold. */
  readonly callerShare: number
}

/**
 * The bytes that a process holds in memory for its callers: bodies on their way to upstreams and answers on their way to
 * slow readers. No caller takes more than its share of it (`FairShare`), but for a single body.
 */
export class MemoryBudget {
  readonly share: FairShare
  /** In the order they began. */
  readonly #arriving = new Set<CountedBody>()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #refused = 0

  constructor(
    limits: () => MemoryBudgetLimits,
    readonly nowMs: Clock = processClock,
  ) {
    this.share = new FairShare(() => {
      const { bytesInFlight, callerShare } = limits()
      return { total: bytesInFlight, callerShare, mayExceedShare: false }
    }, nowMs)
  }

  get bytes(): number {
    return this.share.held
  }

  /** How often there was no room. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Takes bytes for a call, until they are given back or the call is over; false when there is no room for them. `wholeBytes`: of
   * the body that they are a part of.
   */
  take(holder: MemoryHolder, bytes: number, wholeBytes = bytes): boolean {
    if (!this.#hasRoom(holder, bytes, wholeBytes) && !this.#makeRoom(holder, bytes, wholeBytes)) return this.#refuse()
    this.add(holder, bytes)
    return true
  }

  /** Takes bytes that cannot be refused any more, as an answer that was paid for. */
  add(holder: MemoryHolder, bytes: number): void {
    if (holder.isOver) return
    holder.heldBytes += bytes
    this.share.count(sharerOf(holder.caller), bytes)
  }

  /** Gives back what a call holds, at most this much of it. */
  giveBack(holder: MemoryHolder, bytes: number): void {
    const given = Math.min(bytes, holder.heldBytes)
    if (given === 0) return
    holder.heldBytes -= given
    this.share.count(sharerOf(holder.caller), -given)
  }

  /** Gives everything back; the call takes nothing any more. */
  close(holder: MemoryHolder): void {
    this.giveBack(holder, holder.heldBytes)
    holder.isOver = true
  }

  /**
   * Room for a body that is on its way, of `announcedBytes` where its length is known and never more than
   * `maximumBytes`; undefined when there is none.
   */
  reserve(holder: MemoryHolder, announcedBytes: number | undefined, maximumBytes: number): CountedBody | undefined {
    const body = new CountedBody(this, holder, Math.min(announcedBytes ?? maximumBytes, maximumBytes))
    if (!body.reserve()) return undefined
    this.#arriving.add(body)
    return body
  }

  /** A body does not arrive any more. */
  forget(body: CountedBody): void {
    this.#arriving.delete(body)
  }

  #refuse(): false {
    this.#refused++
    return false
  }

  #hasRoom({ caller, heldBytes: begun }: MemoryHolder, bytes: number, wholeBytes: number): boolean {
    // The only holder gets what it asks for: a body larger than the budget could otherwise never be received.
    if (this.bytes === begun) return true
    const limit = wholeBytes <= SMALL_BYTES ? Infinity : this.share.capacity().total * LARGE_SHARE
    return this.share.allows(sharerOf(caller), bytes, { limit, begun })
  }

  /** Takes it from other bodies that are stalled: first what is reserved ahead of them, then their places. */
  #makeRoom(holder: MemoryHolder, bytes: number, wholeBytes: number): boolean {
    const nowMs = this.nowMs()
    // Looking at all bodies for each refusal would be what an attacker wants.
    if (nowMs - this.#lookedAtMs < LOOK_INTERVAL_MS) return false
    this.#lookedAtMs = nowMs
    const stalled = [...this.#arriving].filter((body) => body.isStalled(nowMs) && !body.isOf(holder))
    for (const body of stalled) body.giveBackStep()
    for (const body of stalled) {
      if (this.#hasRoom(holder, bytes, wholeBytes)) return true
      body.evict()
    }
    return stalled.length > 0 && this.#hasRoom(holder, bytes, wholeBytes)
  }
}

/** What one request holds of the budget, for its caller of that moment, who is known after the headers. */
export class BudgetLease implements MemoryLease, MemoryHolder {
  heldBytes = 0
  isOver = false

  constructor(
    private readonly budget: MemoryBudget,
    private readonly request: { readonly caller: Caller },
  ) {}

  get caller(): Caller {
    return this.request.caller
  }

  take(bytes: number): boolean {
    return this.budget.take(this, bytes)
  }

  add(bytes: number): void {
    this.budget.add(this, bytes)
  }

  giveBack(bytes: number): void {
    this.budget.giveBack(this, bytes)
  }

  reserve(announcedBytes: number | undefined, maximumBytes: number): ArrivingBody | undefined {
    return this.budget.reserve(this, announcedBytes, maximumBytes)
  }

  close(): void {
    this.budget.close(this)
  }

  fork(): MemoryLease {
    return new BudgetLease(this.budget, { caller: this.caller })
  }
}
