/** The bytes that one request holds in memory, counted among those of all; implemented where all are counted. */
export interface MemoryLease {
  /** Takes bytes until they are given back or the request is over; false when there is no room for them. */
  take(bytes: number): boolean
  /** Takes bytes that cannot be refused any more, as an answer that was paid for. */
  add(bytes: number): void
  /** Gives back what the request holds, at most this much of it. */
  giveBack(bytes: number): void
  /**
   * Room for a body that is on its way, of `announcedBytes` where its length is known and never more than
   * `maximumBytes`; undefined when there is none.
   */
  reserve(announcedBytes: number | undefined, maximumBytes: number): ArrivingBody | undefined
  /** Gives everything back; nothing is taken any more. */
  close(): void
  /** A lease of its own for work that another request has begun and may outlive it, counted for the same caller. */
  fork(): MemoryLease
}

/** The room of a body that is on its way. */
export interface ArrivingBody {
  /** Bytes have come; false when there is no room for them. What comes beyond the maximum is not kept, nor counted. */
  arrived(bytes: number): boolean
  /** Nothing more comes. What is kept in memory from here on, `keptBytes`, counts until the request is over. */
  end(keptBytes?: number): void
}
