/**
 * Tells whoever works for a caller that the caller has left. One per request and far cheaper than an AbortSignal,
 * which costs an EventTarget for each relayed call.
 */
export class Departure {
  private listeners: (() => void)[] = []
  private happened = false

  get left(): boolean {
    return this.happened
  }

  /** Calls back once when the caller leaves, at once when that has happened already. Returns the way to unsubscribe. */
  onLeave(listener: () => void): () => void {
    if (this.happened) {
      listener()
      return () => undefined
    }
    this.listeners.push(listener)
    return () => {
      // Nearly always the only one, and called at the end of every exchange.
      if (this.listeners.length === 1 && this.listeners[0] === listener) this.listeners.pop()
      else this.listeners = this.listeners.filter((other) => other !== listener)
    }
  }

  announce(): void {
    if (this.happened) return
    this.happened = true
    const listeners = this.listeners
    this.listeners = []
    for (const listener of listeners) listener()
  }
}
