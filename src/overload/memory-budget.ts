import { type Caller, ownerOf } from '../core/caller.js'
import type { ArrivingBody, MemoryLease } from '../core/quota.js'

/** Bytes that one request holds. */
export interface MemoryHolder {
  readonly caller: Caller
  heldBytes: number
  /** Nothing is taken for a call that is over, as it would never be given back. */
  isOver: boolean
}

/** First reservation of a body of unknown length; it grows by doubling. */
const FIRST_BYTES = 262_144

/** How long an announced length is believed; afterwards a body counts with what has arrived of it. */
const BELIEVED_MS = 5_000

/**
 * The reservation of a body that is being received. Its announced length is reserved, so that a body that was accepted is
 * received to its end; but only for some seconds, as stalled senders would otherwise block all others.
 */
class CountedBody implements ArrivingBody {
  #keptBytes = 0
  #arrivedBytes = 0
  #isBelieved = true

  constructor(
    private readonly budget: Pick<MemoryBudget, 'take' | 'giveBack' | 'forget'>,
    private readonly holder: MemoryHolder,
    private readonly maximumBytes: number,
    private readonly startedAtMs: number,
  ) {}

  /** Called once, before anything arrives; false when there is no room. */
  reserve(announcedBytes: number | undefined): boolean {
    return this.#grow(Math.min(announcedBytes ?? FIRST_BYTES, this.maximumBytes))
  }

  arrived(bytes: number): boolean {
    this.#arrivedBytes = Math.min(this.#arrivedBytes + bytes, this.maximumBytes)
    const missingBytes = this.#arrivedBytes - this.#keptBytes
    if (missingBytes <= 0) return true
    const doubled = Math.min(this.#keptBytes, this.maximumBytes - this.#keptBytes)
    if (this.#isBelieved && doubled > missingBytes && this.#grow(doubled)) return true
    return this.#grow(missingBytes)
  }

  end(keptBytes: number = this.#arrivedBytes): void {
    this.budget.forget(this)
    this.budget.giveBack(this.holder, Math.max(0, this.#keptBytes - keptBytes))
    this.#keptBytes = keptBytes
  }

  isLate(nowMs: number): boolean {
    return nowMs - this.startedAtMs > BELIEVED_MS
  }

  /** Counts with what has arrived from here on; whether that makes room. */
  disbelieve(): boolean {
    this.#isBelieved = false
    const sparedBytes = this.#keptBytes - this.#arrivedBytes
    if (sparedBytes <= 0) return false
    this.budget.giveBack(this.holder, sparedBytes)
    this.#keptBytes = this.#arrivedBytes
    return true
  }

  #grow(bytes: number): boolean {
    if (!this.budget.take(this.holder, bytes)) return false
    this.#keptBytes += bytes
    return true
  }
}

/** How long a refused caller is remembered: a caller above its share gets no more meanwhile. */
const WAITING_MS = 10_000

/** A budget shared by several holders. */
interface SharedBytes {
  readonly totalBytes: number
  /** Held by all of them together. */
  readonly heldBytes: number
  /** What one holder may hold while others ask. */
  readonly shareBytes: number
}

/** Held bytes by name, and the last name that was refused, so that no holder takes everything while others ask. */
class BytesInFlightShares {
  readonly #held = new Map<string, number>()
  #waiting: string | undefined
  #waitingUntilMs = 0

  constructor(private readonly nowMs: () => number) {}

  count(name: string, bytes: number): void {
    const held = this.heldBy(name) + bytes
    if (held === 0) this.#held.delete(name)
    else this.#held.set(name, held)
  }

  heldBy(name: string): number {
    return this.#held.get(name) ?? 0
  }

  /** Whether the holder may take more; one within its share that finds no room is remembered. */
  allow(name: string, bytes: number, { totalBytes, heldBytes, shareBytes }: SharedBytes): boolean {
    const ownBytes = this.heldBy(name)
    const isWithinShare = ownBytes === 0 || ownBytes + bytes <= shareBytes
    const fits = heldBytes + bytes <= totalBytes
    if (!fits && isWithinShare) this.#remember(name)
    return fits && (isWithinShare || !this.othersAsk(name))
  }

  /** Whether a holder, or one that is about to take, is not the only one. */
  othersAsk(name: string): boolean {
    if (this.#held.size > (this.#held.has(name) ? 1 : 0)) return true
    return this.#waiting !== undefined && this.#waiting !== name && this.nowMs() < this.#waitingUntilMs
  }

  #remember(name: string): void {
    this.#waiting = name
    this.#waitingUntilMs = this.nowMs() + WAITING_MS
  }
}

interface MemoryBudgetLimits {
  readonly bytesInFlight: number
  /** Of `bytesInFlight`, what one caller may hold while others ask. */
  readonly callerShare: number
}

/**
 * The bytes that a process holds in memory for its callers: bodies on their way to upstreams and answers on their way to
 * slow readers. No caller takes all of it while others ask. Callers with bearers of their own count together as one caller
 * beside the keys, as bearers can be invented; among themselves each has a share of that.
 */
export class MemoryBudget {
  #bytes = 0
  readonly #keys: BytesInFlightShares
  readonly #strangers: BytesInFlightShares
  /** Digests cost more than the rest of the counting. */
  readonly #strangerNames = new WeakMap<Caller, string>()
  /** In the order they began. */
  readonly #arriving = new Set<CountedBody>()
  #refused = 0

  constructor(
    private readonly limits: () => MemoryBudgetLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.#keys = new BytesInFlightShares(nowMs)
    this.#strangers = new BytesInFlightShares(nowMs)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** How often there was no room. */
  get refused(): number {
    return this.#refused
  }

  /** Takes bytes for a call, until they are given back or the call is over; false when there is no room for them. */
  take(holder: MemoryHolder, bytes: number): boolean {
    const hasRoom = this.#hasRoom(holder, bytes) || (this.#disbelieve() && this.#hasRoom(holder, bytes))
    if (!hasRoom) return this.#refuse()
    this.add(holder, bytes)
    return true
  }

  /** Takes bytes that cannot be refused any more, as an answer that was paid for. */
  add(holder: MemoryHolder, bytes: number): void {
    if (holder.isOver) return
    holder.heldBytes += bytes
    this.#count(holder.caller, bytes)
  }

  /** Gives back what a call holds, at most this much of it. */
  giveBack(holder: MemoryHolder, bytes: number): void {
    const given = Math.min(bytes, holder.heldBytes)
    if (given === 0) return
    holder.heldBytes -= given
    this.#count(holder.caller, -given)
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
    const body = new CountedBody(this, holder, maximumBytes, this.nowMs())
    if (!body.reserve(announcedBytes)) return undefined
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

  #hasRoom({ caller, heldBytes: ownBytes }: MemoryHolder, bytes: number): boolean {
    // The only holder gets what it asks for: a body larger than the budget could otherwise never be received.
    if (this.#bytes === ownBytes) return true
    const { bytesInFlight, callerShare } = this.limits()
    const shareBytes = callerShare * bytesInFlight
    if (this.#bytes + bytes <= shareBytes) return true
    if (caller.bearer !== undefined && !this.#strangerHasRoom(caller, bytes)) return false
    return this.#keys.allow(caller.keyId, bytes, { totalBytes: bytesInFlight, heldBytes: this.#bytes, shareBytes })
  }

  #strangerHasRoom(caller: Caller, bytes: number): boolean {
    const heldBytes = this.#keys.heldBy(caller.keyId)
    if (heldBytes === 0) return true
    const { bytesInFlight, callerShare } = this.limits()
    const totalBytes = this.#keys.othersAsk(caller.keyId) ? callerShare * bytesInFlight : bytesInFlight
    const shareBytes = callerShare * totalBytes
    return this.#strangers.allow(this.#strangerName(caller), bytes, { totalBytes, heldBytes, shareBytes })
  }

  #strangerName(caller: Caller): string {
    let name = this.#strangerNames.get(caller)
    if (name === undefined) {
      name = ownerOf(caller)
      this.#strangerNames.set(caller, name)
    }
    return name
  }

  /** Takes back reservations of bodies that stall; whether there were any. */
  #disbelieve(): boolean {
    const nowMs = this.nowMs()
    let wasAny = false
    for (const body of this.#arriving) {
      if (!body.isLate(nowMs)) break
      wasAny = body.disbelieve() || wasAny
    }
    return wasAny
  }

  #count(caller: Caller, bytes: number): void {
    this.#bytes += bytes
    this.#keys.count(caller.keyId, bytes)
    if (caller.bearer !== undefined) this.#strangers.count(this.#strangerName(caller), bytes)
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
