import { hostOf } from './callback-host.js'
import type { CallbackDelivery } from './callback.repository.js'

/** A delivery that nobody else works on until then (Unix milliseconds). */
export interface LeasedDelivery {
  readonly delivery: CallbackDelivery
  readonly lockedUntilMs: number
}

interface Lane {
  underWay: number
  readonly waiting: LeasedDelivery[]
}

/**
 * One lane for each host, so that a slow receiver holds up nobody but itself. A claim may bring more deliveries for one
 * host than may be sent to it at once: the others wait here.
 */
export class HostLanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly running = new Set<Promise<void>>()
  private held = 0

  /** `send` never rejects; `onFree` is called after each delivery. */
  constructor(
    private readonly send: (leased: LeasedDelivery) => Promise<void>,
    private readonly perHost: () => number,
    private readonly onFree: () => void,
  ) {}

  /** Deliveries under way and waiting. */
  get size(): number {
    return this.held
  }

  /** Hosts with as many deliveries as they may have at once. */
  busyHosts(): string[] {
    const perHost = this.perHost()
    return [...this.lanes].filter(([, lane]) => lane.underWay + lane.waiting.length >= perHost).map(([host]) => host)
  }

  add(leased: LeasedDelivery): void {
    const host = hostOf(leased.delivery.url)
    const lane = this.lanes.get(host) ?? { underWay: 0, waiting: [] }
    this.lanes.set(host, lane)
    lane.waiting.push(leased)
    this.held++
    this.advance(host, lane)
  }

  /** Forgets what waits; what is under way goes on. */
  dropWaiting(): void {
    for (const { waiting } of this.lanes.values()) this.held -= waiting.splice(0).length
  }

  /** Resolves once nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running)
  }

  private advance(host: string, lane: Lane): void {
    while (lane.underWay < this.perHost()) {
      const next = lane.waiting.shift()
      if (next === undefined) break
      lane.underWay++
      this.start(host, lane, next)
    }
    if (lane.underWay === 0 && lane.waiting.length === 0) this.lanes.delete(host)
  }

  private start(host: string, lane: Lane, leased: LeasedDelivery): void {
    const work = this.send(leased).then(() => {
      this.running.delete(work)
      lane.underWay--
      this.held--
      this.advance(host, lane)
      this.onFree()
    })
    this.running.add(work)
  }
}
