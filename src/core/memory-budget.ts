import { ArrivingBody, type BytesHolder } from './arriving-body.js'
import { BytesInFlightShares } from './bytes-in-flight-shares.js'
import type { Caller } from './caller.js'
import { ownerOf } from './owner.js'

export interface BytesLimits {
  readonly bytesInFlight: number
  /** Of `bytesInFlight`, what one caller may hold while others ask. */
  readonly callerShare: number
}

/**
 * The bytes that a process holds in memory for its callers: bodies on their way to upstreams and answers on their way to
 * slow readers. One budget for all of them, and no caller takes it all while others ask. Those with bearers of their own are
 * together one caller beside the keys, as anybody can invent more of them; among themselves each has a share of that.
 */
export class BytesInFlight {
  #bytes = 0
  readonly #keys: BytesInFlightShares
  readonly #strangers: BytesInFlightShares
  /** Digests cost more than the rest of the counting. */
  readonly #strangerNames = new WeakMap<Caller, string>()
  /** In the order they began. */
  readonly #arriving = new Set<ArrivingBody>()
  #refused = 0

  constructor(
    private readonly limits: () => BytesLimits,
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
  take(holder: BytesHolder, bytes: number): boolean {
    const hasRoom = this.#hasRoom(holder, bytes) || (this.#disbelieve() && this.#hasRoom(holder, bytes))
    if (!hasRoom) return this.#refuse()
    this.add(holder, bytes)
    return true
  }

  /** Takes bytes that cannot be refused any more, as an answer that was paid for. */
  add(holder: BytesHolder, bytes: number): void {
    if (holder.isOver) return
    holder.heldBytes += bytes
    this.#count(holder.caller, bytes)
  }

  /** Gives back what a call holds, at most this much of it. */
  giveBack(holder: BytesHolder, bytes: number): void {
    const given = Math.min(bytes, holder.heldBytes)
    if (given === 0) return
    holder.heldBytes -= given
    this.#count(holder.caller, -given)
  }

  /** Gives everything back; the call takes nothing any more. */
  close(holder: BytesHolder): void {
    this.giveBack(holder, holder.heldBytes)
    holder.isOver = true
  }

  /**
   * Room for a body that is on its way, of `announcedBytes` where its length is known and never more than
   * `maximumBytes`; undefined when there is none.
   */
  expect(holder: BytesHolder, announcedBytes: number | undefined, maximumBytes: number): ArrivingBody | undefined {
    const body = new ArrivingBody(this, holder, maximumBytes, this.nowMs())
    if (!body.expect(announcedBytes)) return undefined
    this.#arriving.add(body)
    return body
  }

  /** A body does not arrive any more. */
  forget(body: ArrivingBody): void {
    this.#arriving.delete(body)
  }

  #refuse(): false {
    this.#refused++
    return false
  }

  #hasRoom({ caller, heldBytes: ownBytes }: BytesHolder, bytes: number): boolean {
    // Whoever is alone gets what it asks for: a body larger than the whole could otherwise never be received.
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

  /** Takes back what was kept free for bodies that do not come; whether there was any. */
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
