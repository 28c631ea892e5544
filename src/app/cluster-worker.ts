import cluster from 'node:cluster'
import { ConfigRefused, type ConfigSource, handedOver, type ValidConfig } from '../config/config-store.js'
import type { MetricsSnapshot } from '../observability/metrics.js'
import type { WorkerMessage, PrimaryMessage, ReloadResult, WorkerStart } from './cluster-child.js'

/** A worker's source of configurations: only the primary reads and checks the file. */
export class ReceivedConfig {
  private newest: ValidConfig
  private onResult: ((result: ReloadResult) => void) | undefined

  constructor(
    first: ValidConfig,
    private readonly ask: () => void,
  ) {
    this.newest = first
  }

  /** Requests a reload by the primary, for all workers; one at a time. */
  readonly readAgain: ConfigSource = async () => {
    const answer = new Promise<ReloadResult>((resolve) => {
      this.onResult = resolve
    })
    this.ask()
    return this.configOf(await answer)
  }

  /** Receives the result of `readAgain`. */
  settle(result: ReloadResult): void {
    this.keep(result)
    this.onResult?.(result)
  }

  /** Receives the result of a reload that this worker did not request. */
  receive(result: ReloadResult): ConfigSource {
    this.keep(result)
    return () => this.configOf(result)
  }

  private keep(result: ReloadResult): void {
    if ('config' in result) this.newest = handedOver(result)
  }

  /** A reload may have to wait for a later one with a newer result, which must not be replaced by an older one. */
  private configOf(result: ReloadResult): Promise<ValidConfig> {
    return 'faults' in result ? Promise.reject(new ConfigRefused(result.faults)) : Promise.resolve(this.newest)
  }
}

/** The part of a worker's gateway that the primary controls. */
interface Directed {
  reload(from: ConfigSource): Promise<void>
  drain(signal: string): Promise<void>
  collectMetrics(): Promise<MetricsSnapshot>
}

/** The worker's side of the connection to the primary. */
export class PrimaryLink {
  private readonly received: ReceivedConfig
  private directed: Directed | undefined
  private isDraining = false
  /** Reloads received before the gateway was started. */
  private early: ConfigSource[] = []

  private constructor(readonly start: WorkerStart) {
    this.received = new ReceivedConfig(start, () => {
      send({ news: 'asks-reload' })
    })
    cluster.worker?.once('disconnect', () => {
      this.outlive()
    })
  }

  /** Resolves once the primary has sent the start data. */
  static connect(): Promise<PrimaryLink> {
    // Signals of a terminal or service manager reach all processes of a group; workers obey only the primary.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
    return new Promise((resolve) => {
      let primary: PrimaryLink | undefined
      // One listener for all: a message may follow the start data before the code that awaits them continues.
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

  /** Passes further messages to this gateway. */
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
    // Parts with unsaved data save it on exit.
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

  /** Without a primary no new connections arrive. Node would end the worker at once; requests in progress may end first. */
  private outlive(): void {
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
    this.received.settle({ faults: ['the primary process is gone'] })
    this.drain('disconnect')
  }
}

function send(news: WorkerMessage): void {
  // Fails if the primary has just died: the disconnect follows.
  process.send?.(news, undefined, undefined, () => undefined)
}
