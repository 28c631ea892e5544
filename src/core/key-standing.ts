import { GatewayError } from './gateway-error.js'

/** Tells whoever works for the holder of a key for long that the key works no more. */
export class KeyStanding {
  private readonly listeners = new Set<() => void>()
  private over = false

  get isOver(): boolean {
    return this.over
  }

  /** Calls back once, when the key is revoked or has expired; at once when it is. Returns the way to unsubscribe. */
  onOver(listener: () => void): () => void {
    if (this.over) {
      listener()
      return () => undefined
    }
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  end(): void {
    this.over = true
    const listeners = [...this.listeners]
    this.listeners.clear()
    for (const listener of listeners) listener()
  }
}

/** What ends a stream whose key works no more. */
export const keyOver = (): GatewayError => new GatewayError('unauthorized', 'The API key is not valid any more.')
