/** Whether this process should get traffic: not before it listens, not once it drains. */
export class Readiness {
  private state: 'starting' | 'ready' | 'draining' = 'starting'

  get isReady(): boolean {
    return this.state === 'ready'
  }

  get isDraining(): boolean {
    return this.state === 'draining'
  }

  get word(): string {
    return this.state
  }

  announceReady(): void {
    this.state = 'ready'
  }

  announceDraining(): void {
    this.state = 'draining'
  }
}
