import cluster from 'node:cluster'
import { ConfigRefused, type ConfigSource, handedOver, type ValidConfig } from '../config/config-store.js'
import type { MetricsSnapshot } from '../observability/metrics.js'
import type { WorkerMessage, PrimaryMessage, ReloadResult, WorkerStart } from './cluster-child.js'

/** The configuration as a worker hears of it: the primary alone reads and judges it. */
export class ReceivedConfig {
  private newest: ValidConfig
  private onResult: ((result: ReloadResult) => void) | undefined

  constructor(
    first: ValidConfig,
    private readonly ask: () => void,
  ) {
    this.newest = first
  }

  /** Has the primary read it again, for all of its workers; one at a time. */
  readonly readAgain: ConfigSource = async () => {
    const answer = new Promise<ReloadResult>((resolve) => {
      this.onResult = resolve
    })
    this.ask()
    return this.configOf(await answer)
  }

  /** What became of what `readAgain` had asked for. */
  settle(result: ReloadResult): void {
    this.keep(result)
    this.onResult?.(result)
  }

  /** The result of a reload that this worker had not asked for, to reload from. */
  receive(result: ReloadResult): ConfigSource {
    this.keep(result)
    return () => this.configOf(result)
  }

  private keep(result: ReloadResult): void {
    if ('config' in result) this.newest = handedOver(result)
  }

  /** A reload may have to wait for another one whose answer comes later and is newer: none takes the older one back. */
  private configOf(result: ReloadResult): Promise<ValidConfig> {
    return 'faults' in result ? Promise.reject(new ConfigRefused(result.faults)) : Promise.resolve(this.newest)
  }
}

/** A worker's gateway, as far as the primary has a say in it. */
interface Directed {
  reload(from: ConfigSource): Promise<void>
  drain(signal: string): Promise<void>
  collectMetrics(): Promise<MetricsSnapshot>
}

/** The primary, as its worker knows it. */
export class PrimaryLink {
  private readonly received: ReceivedConfig
  private directed: Directed | undefined
  private isDraining = false
  /** Reloads that it wanted before there was a gateway here. */
  private early: ConfigSource[] = []

  private constructor(readonly start: WorkerStart) {
    this.received = new ReceivedConfig(start, () => {
      send({ news: 'asks-reload' })
    })
    cluster.worker?.once('disconnect', () => {
      this.outlive()
    })
  }

  /** Resolves once the primary has sent this process its start. */
  static connect(): Promise<PrimaryLink> {
    // A terminal and a service manager send theirs to every process of a group; only the primary's word counts.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
    return new Promise((resolve) => {
      let primary: PrimaryLink | undefined
      // One listener for all: an order may come together with the start, before the code that awaits it has gone on.
      process.on('message', (message) => {
        if (primary !== undefined) primary.obey(message as PrimaryMessage)
        else resolve((primary = new PrimaryLink(handedOver(message as WorkerStart))))
      })
      send({ news: 'here' })
    })
  }

  /** Reads the configuration again, through the primary. */
  get readAgain(): ConfigSource {
    return this.received.readAgain
  }

  /** From now on its orders go to this gateway. */
  direct(directed: Directed): void {
    this.directed = directed
    for (const from of this.early) this.reload(from)
    this.early = []
  }

  reportListening(address: string): void {
    send({ news: 'listening', address })
  }

  private obey(order: PrimaryMessage): void {
    if (order.order === 'drain') this.drain(order.signal)
    else if (order.order === 'reload') this.reload(this.received.receive(order.result))
    else if (order.order === 'answer') this.received.settle(order.result)
    else if (order.order === 'metrics') void this.sendMetrics(order.id)
    // Parts with something to keep do so on exit.
    else if (order.order === 'exit') process.exit(1)
  }

  private reload(from: ConfigSource): void {
    if (this.directed === undefined) this.early.push(from)
    else void this.directed.reload(from)
  }

  private async sendMetrics(id: number): Promise<void> {
    send({ news: 'metrics', id, snapshot: (await this.directed?.collectMetrics()) ?? [] })
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
    this.received.settle({ faults: ['the primary process is gone'] })
    this.drain('disconnect')
  }
}

function send(news: WorkerMessage): void {
  // To a primary that has just died: the disconnect is on its way.
  process.send?.(news, undefined, undefined, () => undefined)
}
