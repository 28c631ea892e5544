import type { SocketSide } from './socket.js'

const MAXIMUM_MISSES = 2

/**
 * Tells a side that lives from one that does not. Any byte is a sign of life, not only the pong; and a side that
 * takes what is written to it lives as well, as its pong may have to wait behind a long answer.
 */
export class Heartbeat {
  private misses = 0
  private isFirst = true
  private isPingTaken = true
  private bytesRead = 0
  private taken = 0
  private unsentBytes = 0

  constructor(private readonly side: SocketSide) {}

  /** Called once per ping interval: judges the time since the last ping, then pings again. False = dead. */
  beat(): boolean {
    this.misses = this.isFirst || this.showsLife() ? 0 : this.misses + 1
    if (this.misses >= MAXIMUM_MISSES) return false
    this.isFirst = false
    this.bytesRead = this.side.bytesRead
    this.taken = this.side.taken
    this.unsentBytes = this.side.unsentBytes
    if (this.isPingTaken) this.ping()
    return true
  }

  private showsLife(): boolean {
    const { side } = this
    const wasHeld = side.takeWasHeld()
    if (side.taken !== this.taken || side.unsentBytes < this.unsentBytes) return true
    // Who sends but takes nothing for a whole interval will not read what it asks for either.
    return this.isPingTaken && (wasHeld || side.bytesRead !== this.bytesRead)
  }

  private ping(): void {
    this.isPingTaken = false
    this.side.socket.ping(undefined, undefined, () => {
      this.isPingTaken = true
    })
  }
}
