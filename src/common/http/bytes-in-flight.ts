/** Bytes that one request has been granted, until it gives them back. */
export interface Reservation {
  /** Gives back what turned out not to be needed; a reservation never grows. */
  shrinkTo(bytes: number): void
  /** Gives everything back; calling again does nothing. */
  release(): void
}

/** Counts the bytes that requests hold in memory at once. */
export class BytesInFlight {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Grants `bytes` while all that is granted stays within `maximumBytes`; undefined beyond. A request that is alone is
   * granted whatever it asks for: a body larger than the total could otherwise never be received.
   */
  reserve(bytes: number, maximumBytes: number): Reservation | undefined {
    if (this.#bytes > 0 && this.#bytes + bytes > maximumBytes) return undefined
    this.#bytes += bytes
    let held = bytes
    const keep = (kept: number): void => {
      this.#bytes -= held - kept
      held = kept
    }
    return {
      shrinkTo: (needed) => {
        keep(Math.min(held, needed))
      },
      release: () => {
        keep(0)
      },
    }
  }
}
