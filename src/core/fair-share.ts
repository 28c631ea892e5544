import { type Clock, processClock } from './time.js'

/** Who holds a part of what all callers share. */
export interface Sharer {
  /** The id of a key; callers without one of the gateway's count together, as bearers and connections cost nothing. */
  readonly keyId: string
  /** Tells those callers apart; absent for keys. */
  readonly member?: string
}

/** What is shared, in bytes or places. */
interface SharedCapacity {
  readonly total: number
  /** What one caller may hold of it, from 0 to 1; 1 = nothing is kept for others. */
  readonly callerShare: number
  /** False for memory, and for what is held for long: of all else a caller may hold more while no other one asks. */
  readonly mayExceedShare?: boolean
}

/** The last part of what is shared is for callers that hold next to nothing. */
const LAST_PART = 1 / 8
/** Of so few places none is kept: it would be missed. */
const SMALL_NUMBER = 8

const lastPartOf = (total: number, callerShare: number): number =>
  callerShare === 1 || total < SMALL_NUMBER ? 0 : Math.ceil(total * LAST_PART)

/** Next to nothing, as a part of a share. */
const MODEST_PART = 1 / 8

interface Wish {
  readonly amount: number
  /** What the caller holds already of the same thing. */
  readonly begun: number
  /** What all may hold together for it to be granted: less than everything for some uses. */
  readonly limit: number
}

/** How long a refused caller is remembered: a caller above its share gets no more meanwhile. */
const WAITING_MS = 10_000

/** What each of several holds, and the last one that found no room. */
class Holdings {
  readonly #held = new Map<string, number>()
  #waiting: string | undefined
  #waitingUntilMs = 0

  constructor(private readonly nowMs: () => number) {}

  count(name: string, amount: number): void {
    const held = this.heldBy(name) + amount
    if (held === 0) this.#held.delete(name)
    else this.#held.set(name, held)
  }

  heldBy(name: string): number {
    return this.#held.get(name) ?? 0
  }

  /**
   * Whether a holder may take more of `capacity`, of which all together hold `held`. A single thing may be larger than a share:
   * it could never be had otherwise. As two callers may have all between their shares, the last part is for modest ones.
   */
  allows(name: string, { amount, begun, limit }: Wish, held: number, capacity: SharedCapacity): boolean {
    const { total, callerShare, mayExceedShare = true } = capacity
    const own = this.heldBy(name)
    const isFirst = own === begun
    const isWithinShare = isFirst || own + amount <= callerShare * total
    const isModest = isFirst || own + amount <= callerShare * total * MODEST_PART
    const usable = isModest ? total : total - lastPartOf(total, callerShare)
    if (held + amount > Math.min(usable, limit)) {
      if (isWithinShare) this.#remember(name)
      return false
    }
    return isWithinShare || (mayExceedShare && !this.othersAsk(name))
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

/**
 * Keeps one caller from holding everything: each key has a share of the whole, and callers without a key together have that of
 * one key, of which each of them has a share in turn. Counts only: what is held is the owner's matter.
 */
export class FairShare {
  #held = 0
  #refused = 0
  readonly #keys: Holdings
  readonly #members: Holdings

  constructor(
    readonly capacity: () => SharedCapacity,
    nowMs: Clock = processClock,
  ) {
    this.#keys = new Holdings(nowMs)
    this.#members = new Holdings(nowMs)
  }

  get held(): number {
    return this.#held
  }

  /** How often a caller was refused although there was room. */
  get refused(): number {
    return this.#refused
  }

  heldBy({ keyId, member }: Sharer): number {
    return member === undefined ? this.#keys.heldBy(keyId) : this.#members.heldBy(member)
  }

  /** Whether a caller may take so much more: of a thing that it holds a part of, or where less than everything may be held. */
  allows(sharer: Sharer, amount: number, { limit = Infinity, begun = 0 } = {}): boolean {
    const capacity = this.capacity()
    const isAllowed = this.#allows(sharer, { amount, begun, limit }, capacity)
    if (!isAllowed && this.#held + amount <= Math.min(capacity.total, limit)) this.#refused++
    return isAllowed
  }

  count({ keyId, member }: Sharer, amount: number): void {
    this.#held += amount
    this.#keys.count(keyId, amount)
    if (member !== undefined) this.#members.count(member, amount)
  }

  /** Takes what it may; false when it may not. */
  take(sharer: Sharer, amount = 1): boolean {
    if (!this.allows(sharer, amount)) return false
    this.count(sharer, amount)
    return true
  }

  #allows({ keyId, member }: Sharer, wish: Wish, capacity: SharedCapacity): boolean {
    if (member === undefined) return this.#keys.allows(keyId, wish, this.#held, capacity)
    if (!this.#hasRoomAmongMembers(keyId, member, wish, capacity)) return false
    // All of them together are many callers, which may have what no key asks for.
    return this.#keys.allows(keyId, wish, this.#held, { ...capacity, mayExceedShare: true })
  }

  #hasRoomAmongMembers(keyId: string, member: string, wish: Wish, capacity: SharedCapacity): boolean {
    const held = this.#keys.heldBy(keyId)
    if (held === 0) return true
    const part = this.#keys.othersAsk(keyId) ? capacity.callerShare : 1
    return this.#members.allows(member, wish, held, { ...capacity, total: part * capacity.total })
  }
}
