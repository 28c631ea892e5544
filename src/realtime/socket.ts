import { Socket } from 'node:net'
import type { RealtimeUpstream } from '../providers/contract.js'

export type SessionSocket = RealtimeUpstream['socket']

const AS_TEXT = { binary: false, compress: false }

/**
 * One of the two sockets of a session: what is written to it, and whether it is read. A side that does not take what is
 * written to it as fast as it comes stops the reading of whoever sends, so that at most the pause mark and one more
 * message wait in memory; what it finally took lets the senders go on. Nothing is polled.
 */
export class SocketSide {
  /** Sides that are not read until this one has taken what waits for it; itself among them when it was answered. */
  private readonly heldBack = new Set<SocketSide>()
  /** For whose sake this one is not read: sides, and whoever waits for something else. */
  private readonly heldBy = new Set<object>()
  /** Grows whenever something that waited was taken. */
  private takenCount = 0
  private wasHeldBack = false

  constructor(
    readonly socket: SessionSocket,
    private readonly pauseBytes: number,
  ) {}

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  /** Its connection is closed, and it has said so or will say nothing more. */
  get isGone(): boolean {
    return this.socket.readyState === this.socket.CLOSED
  }

  /** Bytes in this process that the side has not taken yet. */
  get waitingBytes(): number {
    return this.socket.bufferedAmount
  }

  get taken(): number {
    return this.takenCount
  }

  /**
   * All that ever came over the connection, messages that are not complete yet included. The library tells nothing of
   * a long message on a slow line before its end.
   */
  get bytesRead(): number {
    return this.connection?.bytesRead ?? 0
  }

  /**
   * What the system has not taken of the write that is under way. Unlike `waitingBytes` it shrinks while a long message
   * goes out over a slow line, of which the library tells nothing before its end either.
   */
  get unsentBytes(): number {
    const handle: unknown = this.connection === undefined ? undefined : Reflect.get(this.connection, '_handle')
    const bytes: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : 0
    return typeof bytes === 'number' ? bytes : 0
  }

  /** Sends one text message because of something that `from` sent. Returns its bytes, none when the side has closed. */
  send(frame: Buffer, from: SocketSide): number {
    if (!this.isOpen) return 0
    if (this.heldBack.size === 0 && this.waitingBytes + frame.length <= this.pauseBytes) {
      this.socket.send(frame, AS_TEXT)
      return frame.length
    }
    this.heldBack.add(from)
    from.hold(this)
    // The last of the waiting messages has this callback in any case, so that the senders cannot be forgotten.
    this.socket.send(frame, AS_TEXT, this.onTaken)
    return frame.length
  }

  /** Whether the side was not read for a while since this was last asked: its pongs may lie there unread. */
  takeWasHeld(): boolean {
    const was = this.wasHeldBack
    this.wasHeldBack = this.heldBy.size > 0
    return was
  }

  /** Is not read until whoever holds it lets go. What the library has read already still comes. */
  hold(by: object): void {
    this.heldBy.add(by)
    this.wasHeldBack = true
    this.socket.pause()
  }

  release(by: object): void {
    if (this.heldBy.delete(by) && this.heldBy.size === 0) this.socket.resume()
  }

  /** Reads on in any case: what comes after the end of a session is dropped, but the answer to a close must be seen. */
  readOn(): void {
    this.heldBy.clear()
    this.socket.resume()
  }

  private get connection(): Socket | undefined {
    const connection: unknown = Reflect.get(this.socket, '_socket')
    return connection instanceof Socket ? connection : undefined
  }

  private readonly onTaken = (): void => {
    this.takenCount++
    if (this.isOpen && this.waitingBytes > this.pauseBytes / 2) return
    for (const side of this.heldBack) side.release(this)
    this.heldBack.clear()
  }
}
