import type { Sharer } from '../core/fair-share.js'

/** Times are forgotten by half in a second. */
const TICK_MS = 100
const REMAINS_PER_TICK = 0.5 ** (TICK_MS / 1_000)
const FORGOTTEN_BELOW = 0.05
/** What a sum of such counts is, of which half is forgotten in a second, per request and second. */
const RATE_OF_SUM = Math.LN2

/** Callers that are told apart; beyond them new ones of a burst count as one. */
const MAXIMUM_NAMES = 4_096
const OTHERS = ''

const LEAST_PER_TICK = 5

/**
 * The part of a total that each may have when none gets more than it asks for and the rest goes round (max-min fairness): all
 * who had less asked for no more.
 */
export function fairPart(used: readonly number[], total: number): number {
  let rest = total
  let left = used.length
  for (const amount of Float64Array.from(used).sort()) {
    const part = rest / left
    if (amount > part) return part
    rest -= amount
    left--
  }
  return used.length === 0 ? total : Math.max(rest, ...used)
}

/** Of bodies and answers, as much work as a request without them, roughly. */
const BYTES_PER_REQUEST = 32_768

/** Work of the last seconds by name, in requests. */
class Recent {
  readonly #used = new Map<string, { work: number }>()
  part = 0

  get names(): number {
    return this.#used.size
  }

  get sum(): number {
    let sum = 0
    for (const { work } of this.#used.values()) sum += work
    return sum
  }

  count(name: string, work: number): void {
    const used = this.#usedBy(name)
    if (used === undefined) this.#used.set(this.#isFull ? OTHERS : name, { work })
    else used.work += work
  }

  isBelowPart(name: string): boolean {
    return (this.#usedBy(name)?.work ?? 0) + 1 <= this.part
  }

  get #isFull(): boolean {
    return this.#used.size >= MAXIMUM_NAMES
  }

  #usedBy(name: string): { work: number } | undefined {
    return this.#used.get(name) ?? (this.#isFull ? this.#used.get(OTHERS) : undefined)
  }

  /** Time goes on; parts are made of at least `total`. */
  tick(total = 0): void {
    for (const [name, used] of this.#used) {
      used.work *= REMAINS_PER_TICK
      if (used.work < FORGOTTEN_BELOW) this.#used.delete(name)
    }
    const works = Array.from(this.#used.values(), ({ work }) => work)
    // A newcomer is one more to divide by.
    this.part = fairPart([...works, 0], Math.max(total, this.sum))
  }
}

/**
 * Who goes first when there is not enough for all: callers that had less than their fair part of the work of the last seconds, a
 * request and what has passed for it; what is only announced costs nothing and counts for nothing. Keys divide the whole. Callers
 * without one are one of them, and divide its part by their addresses. Addresses cost little, so they go first for at most half of
 * what is admitted; keys may for all of it. A flood from many addresses is shed like any other.
 */
export class FairTurns {
  readonly #keys = new Recent()
  readonly #members = new Recent()
  #keyTurns = LEAST_PER_TICK
  #memberTurns = LEAST_PER_TICK
  #tickedAtMs = 0

  /** Whether more than one caller was admitted in the last seconds. */
  get isShared(): boolean {
    return this.#keys.names > 1 || this.#members.names > 1
  }

  /** Notes an admission. */
  count({ keyId, member }: Sharer): void {
    this.#count(keyId, member, 1)
  }

  /** Notes what has passed for an admitted request, both ways. */
  countBytes({ keyId, member }: Sharer, bytes: number): void {
    // Most requests have a few hundred.
    if (bytes >= BYTES_PER_REQUEST) this.#count(keyId, member, bytes / BYTES_PER_REQUEST)
  }

  #count(keyId: string, member: string | undefined, work: number): void {
    this.#keys.count(keyId, work)
    if (member !== undefined) this.#members.count(member, work)
  }

  /** Whether a caller goes before others; each time counts. */
  takesTurn({ keyId, member }: Sharer): boolean {
    const isFirst = member === undefined ? this.#keys.isBelowPart(keyId) : this.#members.isBelowPart(member)
    if (!isFirst) return false
    return member === undefined ? this.#keyTurns-- >= 1 : this.#memberTurns-- >= 1
  }

  /** Called at least ten times a second. */
  tick(nowMs: number): void {
    if (nowMs - this.#tickedAtMs < TICK_MS) return
    this.#tickedAtMs = nowMs
    this.#keys.tick()
    this.#members.tick(this.#keys.part)
    const perTick = (this.#keys.sum * RATE_OF_SUM * TICK_MS) / 1_000
    this.#keyTurns = Math.max(LEAST_PER_TICK, perTick)
    this.#memberTurns = Math.max(LEAST_PER_TICK, perTick / 2)
  }
}
