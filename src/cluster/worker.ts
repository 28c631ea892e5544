import cluster from 'node:cluster'
import type { MetricsSnapshot } from '../common/observability/metrics.js'
import type { NewsOfWorker, OrderToWorker } from './worker-messages.js'

/** A worker's gateway, as far as the primary has a say in it. */
export interface Directed {
  reload(): Promise<void>
  drain(signal: string): Promise<void>
  collectMetrics(): Promise<MetricsSnapshot>
}

/** Which of the workers this process is, from 1, and how many there are. */
export interface WorkerPlace {
  readonly worker: number
  readonly workers: number
}

/** The primary, as its worker knows it. */
export class Primary {
  private directed: Directed | undefined
  private isDraining = false

  private constructor(readonly place: WorkerPlace) {
    cluster.worker?.once('disconnect', () => {
      this.outlive()
    })
  }

  /** Resolves once the primary has told this process its place. */
  static hear(): Promise<Primary> {
    // A terminal and a service manager send theirs to every process of a group; only the primary's word counts.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
    return new Promise((resolve) => {
      let primary: Primary | undefined
      // One listener for all: an order may come together with the place, before whoever waits for that has gone on.
      process.on('message', (message) => {
        if (primary !== undefined) primary.obey(message as OrderToWorker)
        else resolve((primary = new Primary(message as WorkerPlace)))
      })
      tell({ news: 'here' })
    })
  }

  /** From now on its orders go to this gateway. */
  direct(directed: Directed): void {
    this.directed = directed
  }

  /** The configuration was read again, and the primary did not ask for it. */
  tellOfReload(): void {
    tell({ news: 'reloaded' })
  }

  announce(address: string): void {
    tell({ news: 'listening', address })
  }

  private obey(order: OrderToWorker): void {
    const { directed } = this
    if (order.order === 'drain') this.drain(order.signal)
    // What is asked of a worker that is not there yet comes by itself: it reads the newest configuration.
    else if (order.order === 'reload') void directed?.reload()
    else if (order.order === 'metrics') void this.tellMetrics(order.id)
  }

  private async tellMetrics(id: number): Promise<void> {
    tell({ news: 'metrics', id, snapshot: (await this.directed?.collectMetrics()) ?? [] })
  }

  private drain(signal: string): void {
    if (this.isDraining) return
    this.isDraining = true
    // Nothing has been served yet.
    if (this.directed === undefined) process.exit(0)
    void this.directed.drain(signal)
  }

  /** Without a primary nothing new arrives. Node would end a worker at once; what it has under way may end first. */
  private outlive(): void {
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
    this.drain('disconnect')
  }
}

function tell(news: NewsOfWorker): void {
  // To a primary that has just died: the disconnect is on its way.
  process.send?.(news, undefined, undefined, () => undefined)
}
