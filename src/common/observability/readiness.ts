/** Whether this process should get traffic: not before it listens, not once it drains, not without its store. */
export class Readiness {
  private state: 'starting' | 'ready' | 'draining' = 'starting'
  private isStoreLost = false
  private readonly listeners: (() => void)[] = []

  get isReady(): boolean {
    return this.state === 'ready' && !this.isStoreLost
  }

  get isDraining(): boolean {
    return this.state === 'draining'
  }

  get word(): string {
    return this.state === 'ready' && this.isStoreLost ? 'store_unreachable' : this.state
  }

  announceReady(): void {
    this.state = 'ready'
  }

  announceDraining(): void {
    this.state = 'draining'
    for (const listener of this.listeners) listener()
  }

  /** Calls back when the drain begins: what would not end by itself ends then. */
  onDraining(listener: () => void): void {
    this.listeners.push(listener)
  }

  /** The store was asked for and does not answer. */
  announceStoreLost(): void {
    this.isStoreLost = true
  }

  announceStoreBack(): void {
    this.isStoreLost = false
  }
}
