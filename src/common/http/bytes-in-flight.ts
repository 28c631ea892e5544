import { ArrivingBody, type BytesHolder } from './arriving-body.js'

export interface BytesLimits {
  readonly bytesInFlight: number
  /** Of `bytesInFlight`, what one caller may hold while others ask. */
  readonly callerShare: number
}

/** How long a caller who found no room is kept in mind: whoever holds more than its share gets no more meanwhile. */
const WAITING_MS = 10_000

/**
 * The bytes that a process holds in memory for its callers: bodies on their way to upstreams and answers on their way to
 * slow readers. One budget for all of them, and no caller takes it all while others ask.
 */
export class BytesInFlight {
  #bytes = 0
  readonly #byCaller = new Map<string, number>()
  /** In the order they began. */
  readonly #arriving = new Set<ArrivingBody>()
  #refused = 0
  #waitingCaller: string | undefined
  #waitingUntilMs = 0

  constructor(
    private readonly limits: () => BytesLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

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
    this.#count(holder.caller.keyId, bytes)
  }

  /** Gives back what a call holds, at most this much of it. */
  giveBack(holder: BytesHolder, bytes: number): void {
    const given = Math.min(bytes, holder.heldBytes)
    if (given === 0) return
    holder.heldBytes -= given
    this.#count(holder.caller.keyId, -given)
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

  #hasRoom({ caller: { keyId }, heldBytes: ownBytes }: BytesHolder, bytes: number): boolean {
    // Whoever is alone gets what it asks for: a body larger than the whole could otherwise never be received.
    if (this.#bytes === ownBytes) return true
    const { bytesInFlight, callerShare } = this.limits()
    const shareBytes = callerShare * bytesInFlight
    if (this.#bytes + bytes <= shareBytes) return true
    const heldBytes = this.#byCaller.get(keyId) ?? 0
    const isWithinShare = heldBytes === 0 || heldBytes + bytes <= shareBytes
    const fits = this.#bytes + bytes <= bytesInFlight
    if (!fits && isWithinShare) this.#remember(keyId)
    return fits && (isWithinShare || !this.#othersAsk(keyId))
  }

  #remember(keyId: string): void {
    this.#waitingCaller = keyId
    this.#waitingUntilMs = this.nowMs() + WAITING_MS
  }

  #othersAsk(keyId: string): boolean {
    if (this.#byCaller.size > 1) return true
    return this.#waitingCaller !== undefined && this.#waitingCaller !== keyId && this.nowMs() < this.#waitingUntilMs
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

  #count(keyId: string, bytes: number): void {
    this.#bytes += bytes
    const held = (this.#byCaller.get(keyId) ?? 0) + bytes
    if (held === 0) this.#byCaller.delete(keyId)
    else this.#byCaller.set(keyId, held)
  }
}
