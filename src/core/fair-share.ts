/** Who holds a part of what all callers share. */
export interface Sharer {
  /** The id of a key; callers without one of the gateway's count together, as bearers and connections cost nothing. */
  readonly keyId: string
  /** Tells those callers apart; absent for keys. */
  readonly member?: string
}

/** What is shared, in bytes or places. */
export interface SharedCapacity {
  readonly total: number
  /** What one caller may hold of it, from 0 to 1. */
  readonly callerShare: number
  /** What only callers within their share may take. */
  readonly reserve: number
}

/** One place in so many stays free for callers that hold few, but for numbers so small that it would be missed. */
const RESERVED_PLACES = 8
const SMALL_NUMBER = 8

const reservedOf = (total: number): number => (total < SMALL_NUMBER ? 0 : Math.ceil(total / RESERVED_PLACES))

/** Places: a caller may hold more than its share while no other one asks. */
export const capacityOfPlaces = (total: number, callerShare: number): SharedCapacity => ({
  total,
  callerShare,
  reserve: callerShare === 1 ? 0 : reservedOf(total),
})

/** Memory: no caller ever holds more than its share. */
export const capacityOfBytes = (total: number, callerShare: number): SharedCapacity => ({
  total,
  callerShare,
  reserve: total - callerShare * total,
})

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
   * Whether a holder may take more of `capacity`, of which all together hold `held`. A single thing may be larger than a share: it could
   * never be had otherwise. The last eighth is for holders of next to nothing, as two of them have all between their shares.
   */
  allows(name: string, { amount, begun, limit }: Wish, held: number, capacity: SharedCapacity): boolean {
    const { total, callerShare, reserve } = capacity
    const own = this.heldBy(name)
    const isWithinShare = own === begun || own + amount <= callerShare * total
    const isModest = own === begun || own + amount <= (callerShare * total) / RESERVED_PLACES
    const leftToModest = isModest || callerShare === 1 ? 0 : reservedOf(total)
    if (held + amount > Math.min(total - leftToModest, limit)) {
      if (isWithinShare) this.#remember(name)
      return false
    }
    return isWithinShare || (held + amount <= total - reserve && !this.othersAsk(name))
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
 * Keeps one caller from holding everything: each key has a share of the whole, and callers without a key together have that of one
 * key, of which each of them has a share in turn. What others do not ask for may be held beyond a share, up to a reserve. Counts only: what is
 * held is the owner's matter.
 */
export class FairShare {
  #held = 0
  #refused = 0
  readonly #keys: Holdings
  readonly #members: Holdings

  constructor(
    readonly capacity: () => SharedCapacity,
    nowMs: () => number = () => performance.now(),
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
    const reserve = Math.min(capacity.reserve, reservedOf(capacity.total))
    return this.#keys.allows(keyId, wish, this.#held, { ...capacity, reserve })
  }

  #hasRoomAmongMembers(keyId: string, member: string, wish: Wish, capacity: SharedCapacity): boolean {
    const held = this.#keys.heldBy(keyId)
    if (held === 0) return true
    const part = this.#keys.othersAsk(keyId) ? capacity.callerShare : 1
    const { total, callerShare, reserve } = capacity
    return this.#members.allows(member, wish, held, { total: part * total, callerShare, reserve: part * reserve })
  }
}
