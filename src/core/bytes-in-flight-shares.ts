/** How long somebody who found no room is kept in mind: whoever holds more than its share gets no more meanwhile. */
const WAITING_MS = 10_000

/** A number of bytes of which several take. */
export interface SharedBytes {
  readonly totalBytes: number
  /** What all of them hold together. */
  readonly heldBytes: number
  /** What one of them may hold while others ask. */
  readonly shareBytes: number
}

/** Who holds how much, and who found no room: so that nobody takes everything while others ask. Names end with their bytes. */
export class BytesInFlightShares {
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

  /** Whether one may have more; who may not for want of room alone is kept in mind. */
  allow(name: string, bytes: number, { totalBytes, heldBytes, shareBytes }: SharedBytes): boolean {
    const ownBytes = this.heldBy(name)
    const isWithinShare = ownBytes === 0 || ownBytes + bytes <= shareBytes
    const fits = heldBytes + bytes <= totalBytes
    if (!fits && isWithinShare) this.#remember(name)
    return fits && (isWithinShare || !this.othersAsk(name))
  }

  /** Of one who holds something, or is about to: whether it is not the only one. */
  othersAsk(name: string): boolean {
    if (this.#held.size > (this.#held.has(name) ? 1 : 0)) return true
    return this.#waiting !== undefined && this.#waiting !== name && this.nowMs() < this.#waitingUntilMs
  }

  #remember(name: string): void {
    this.#waiting = name
    this.#waitingUntilMs = this.nowMs() + WAITING_MS
  }
}
