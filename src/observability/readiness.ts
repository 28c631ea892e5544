/** Whether this process should get traffic: not before it listens, not once it is to stop, not without its store. */
export class Readiness {
  private state: 'starting' | 'ready' | 'leaving' | 'draining' = 'starting'
  private isStoreLost = false
  private readonly drainListeners: (() => void)[] = []
  private readonly graceListeners: (() => void)[] = []

  get isReady(): boolean {
    return this.state === 'ready' && !this.isStoreLost
  }

  /** Callers should find another process for their next request; this one still serves whatever comes. */
  get isLeaving(): boolean {
    return this.state === 'leaving' || this.state === 'draining'
  }

  get isDraining(): boolean {
    return this.state === 'draining'
  }

  get hasLostStore(): boolean {
    return this.isStoreLost
  }

  get status(): string {
    if (this.state === 'leaving') return 'draining'
    return this.state === 'ready' && this.isStoreLost ? 'store_unreachable' : this.state
  }

  markReady(): void {
    this.state = 'ready'
  }

  markLeaving(): void {
    this.state = 'leaving'
  }

  markDraining(): void {
    this.state = 'draining'
    for (const listener of this.drainListeners) listener()
  }

  /** Calls back when the drain begins: what would not end by itself ends then, or as soon as that cuts nothing off. */
  onDraining(listener: () => void): void {
    this.drainListeners.push(listener)
  }

  /** What still runs has had its time. */
  markGraceOver(): void {
    for (const listener of this.graceListeners) listener()
  }

  /** Calls back when the grace time of the drain is over: what is left ends now. */
  onGraceOver(listener: () => void): void {
    this.graceListeners.push(listener)
  }

  /** The store was asked for and does not answer. */
  markStoreLost(): void {
    this.isStoreLost = true
  }

  markStoreBack(): void {
    this.isStoreLost = false
  }
}
