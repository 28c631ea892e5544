/** Whether this process should get traffic: not before it listens, while it drains, or without its store. */
export class Readiness {
  private state: 'starting' | 'ready' | 'leaving' | 'draining' = 'starting'
  private isStoreLost = false
  private readonly drainListeners: (() => void)[] = []
  private readonly graceListeners: (() => void)[] = []

  get isReady(): boolean {
    return this.state === 'ready' && !this.isStoreLost
  }

  /** True from the stop signal on: clients should use another process, while requests are still served. */
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

  /** Calls back when the drain begins: long-lived work should then end as soon as nothing is cut off by it. */
  onDraining(listener: () => void): void {
    this.drainListeners.push(listener)
  }

  /** The grace time of the drain is over. */
  markGraceOver(): void {
    for (const listener of this.graceListeners) listener()
  }

  /** Calls back when the grace time of the drain is over: all remaining work must end. */
  onGraceOver(listener: () => void): void {
    this.graceListeners.push(listener)
  }

  /** The store is in use and does not answer. */
  markStoreLost(): void {
    this.isStoreLost = true
  }

  markStoreBack(): void {
    this.isStoreLost = false
  }
}
