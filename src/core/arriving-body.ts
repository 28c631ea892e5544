import type { Caller } from './caller.js'

/** Whoever holds bytes: a call. */
export interface BytesHolder {
  readonly caller: Caller
  heldBytes: number
  /** Nothing is taken for a call that is over: nobody would give it back. */
  isOver: boolean
}

/** What a body of unknown length is given room for at first; it grows by doubling. */
const FIRST_BYTES = 262_144

/** How long an announced length is believed; afterwards a body counts with what has arrived of it. */
const BELIEVED_MS = 5_000

/** Where an arriving body gets its room from. */
interface Room {
  take(holder: BytesHolder, bytes: number): boolean
  giveBack(holder: BytesHolder, bytes: number): void
  forget(body: ArrivingBody): void
}

/**
 * The room of a body that is on its way. What it announces is kept free for it, so that bodies which are let in are
 * received to their end; but only for some seconds, as a sender who stalls would otherwise keep everybody out.
 */
export class ArrivingBody {
  #keptBytes = 0
  #arrivedBytes = 0
  #isBelieved = true

  constructor(
    private readonly room: Room,
    private readonly holder: BytesHolder,
    private readonly maximumBytes: number,
    private readonly startedAtMs: number,
  ) {}

  /** Called once, before anything arrives; false when there is no room. */
  expect(announcedBytes: number | undefined): boolean {
    return this.#grow(Math.min(announcedBytes ?? FIRST_BYTES, this.maximumBytes))
  }

  /** Bytes have come; false when there is no room for them. What comes beyond the maximum is not kept, nor counted. */
  arrived(bytes: number): boolean {
    this.#arrivedBytes = Math.min(this.#arrivedBytes + bytes, this.maximumBytes)
    const missingBytes = this.#arrivedBytes - this.#keptBytes
    if (missingBytes <= 0) return true
    const doubled = Math.min(this.#keptBytes, this.maximumBytes - this.#keptBytes)
    if (this.#isBelieved && doubled > missingBytes && this.#grow(doubled)) return true
    return this.#grow(missingBytes)
  }

  /** Nothing more comes. What is kept in memory from here on, `keptBytes`, counts until the call is over. */
  end(keptBytes: number = this.#arrivedBytes): void {
    this.room.forget(this)
    this.room.giveBack(this.holder, Math.max(0, this.#keptBytes - keptBytes))
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
    this.room.giveBack(this.holder, sparedBytes)
    this.#keptBytes = this.#arrivedBytes
    return true
  }

  #grow(bytes: number): boolean {
    if (!this.room.take(this.holder, bytes)) return false
    this.#keptBytes += bytes
    return true
  }
}
