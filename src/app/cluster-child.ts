import type { Worker } from 'node:cluster'
import type { Readable } from 'node:stream'
import type { GatewayConfig } from '../config/settings.js'
import type { LineSink } from '../observability/logger.js'
import { mergedSnapshot, type MetricsSnapshot } from '../observability/metrics.js'

/** Result of a reload by the primary. */
export type ReloadResult =
  | {
      readonly config: GatewayConfig
      /** Changed settings that keep their running values in `config`. */
      readonly needsRestart: readonly string[]
    }
  | { readonly faults: readonly string[] }

export interface WorkerStart {
  readonly config: GatewayConfig
}

/** Messages of the primary to a worker. Workers ignore signals, as terminals and service managers send them to all. */
export type PrimaryMessage =
  | ({ readonly order: 'begin' } & WorkerStart)
  | { readonly order: 'reload'; readonly result: ReloadResult }
  /** The reload result for the worker that requested it. */
  | { readonly order: 'answer'; readonly result: ReloadResult }
  | { readonly order: 'drain'; readonly signal: string }
  /** End at once, only saving what is not stored. */
  | { readonly order: 'exit' }
  | { readonly order: 'metrics'; readonly id: number }

/** Messages of a worker to the primary. Messages to a worker that does not listen yet are lost, so it reports that first. */
export type WorkerMessage =
  | { readonly news: 'here' }
  | { readonly news: 'asks-reload' }
  | { readonly news: 'listening'; readonly address: string }
  | { readonly news: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }

/** Counters and histograms; gauges of an ended process are meaningless. */
const GROWING: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

/** Metrics of a worker; the last known ones where it did not send them in time: sums over workers must not go down. */
export function completed(sent: MetricsSnapshot, before: MetricsSnapshot): MetricsSnapshot {
  const names = new Set(sent.map(nameOf))
  return [...sent, ...before.filter((metric) => grows(metric) && !names.has(nameOf(metric)))]
}

const grows = (metric: object): boolean => GROWING.has(Reflect.get(metric, 'type'))
const nameOf = (metric: object): unknown => Reflect.get(metric, 'name')

/** Counters of ended workers: without them, the sums over all workers would go down when one dies. */
export class EndedWorkers {
  private merged: Promise<MetricsSnapshot> = Promise.resolve([])

  add(last: MetricsSnapshot): void {
    const grown = last.filter(grows)
    // Merged, as their number is unbounded.
    if (grown.length > 0) this.merged = this.merged.then((merged) => mergedSnapshot([merged, grown]))
  }

  snapshot(): Promise<MetricsSnapshot> {
    return this.merged
  }
}

/** Adds the worker number to each JSON line, as all workers share one log. A line that is no JSON object is left unchanged. */
export const numberedLines = (worker: number, sink: LineSink): LineSink => ({
  write: (line) => {
    sink.write(line.startsWith('{"') ? `{"worker":${worker},${line.slice(1)}` : line)
  },
})

const MINIMUM_DELAY_MS = 100
const MAXIMUM_DELAY_MS = 30_000

/** A worker that ran this long did not fail at start. */
const STABLE_MS = 60_000

/** Backoff before a dead worker is replaced: it grows while workers fail at start. */
export class RestartDelay {
  private earlyExits = 0

  /** Delay in milliseconds after a worker of this lifetime. */
  after(lifetimeMs: number): number {
    this.earlyExits = lifetimeMs >= STABLE_MS ? 0 : this.earlyExits + 1
    return Math.min(MINIMUM_DELAY_MS * 2 ** Math.max(0, this.earlyExits - 1), MAXIMUM_DELAY_MS)
  }
}

/** Timeout for a worker's metrics; its previous ones are used then. */
const METRICS_DEADLINE_MS = 3_000

/** A worker's reply to the request with an id; undefined if it times out or ends before. */
function metricsOf(worker: Worker, id: number): Promise<MetricsSnapshot> {
  return new Promise((resolve) => {
    const onMessage = (news: WorkerMessage): void => {
      if (news.news === 'metrics' && news.id === id) end(news.snapshot)
    }
    const leave = (): void => {
      end([])
    }
    const end = (snapshot: MetricsSnapshot): void => {
      clearTimeout(timer)
      worker.off('message', onMessage)
      worker.off('exit', leave)
      resolve(snapshot)
    }
    const timer = setTimeout(leave, METRICS_DEADLINE_MS)
    worker.on('message', onMessage)
    worker.once('exit', leave)
  })
}

/**
 * Writes the output of all workers to one sink, in whole lines. Each worker has a pipe of its own: in one that several processes
 * share, writes to a full pipe are split, and lines longer than PIPE_BUF (4096 bytes) may be torn at any time.
 */
export class WorkerLines {
  private readonly open = new Set<Promise<void>>()

  constructor(private readonly sink: LineSink) {}

  /** Relays a worker's output until it ends. */
  follow(output: Readable, worker: number): void {
    const sink = numberedLines(worker, this.sink)
    let rest = ''
    output.setEncoding('utf8')
    output.on('data', (chunk: string) => {
      const text = rest + chunk
      let begin = 0
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', begin)) {
        sink.write(text.slice(begin, end + 1))
        begin = end + 1
      }
      rest = text.slice(begin)
    })
    const ended = new Promise<void>((resolve) => {
      output.once('close', () => {
        // A worker killed in the middle of a line has not ended it.
        if (rest !== '') sink.write(`${rest}\n`)
        this.open.delete(ended)
        resolve()
      })
    })
    this.open.add(ended)
  }

  /** Resolves when no further line can come. */
  async ended(): Promise<void> {
    await Promise.all(this.open)
  }
}

/** Time for a worker to save what is not stored: ten thousands of rows on a slow disk. */
const SAVE_MS = 2_000

interface WorkerProcessOptions {
  readonly fork: () => Worker
  readonly start: () => WorkerStart
  /** The worker exited unexpectedly, and another one is started after `delayMs`. */
  readonly onDeath: (death: { readonly code: number | null; readonly signal: string | null; delayMs: number }) => void
  /** The worker did not end within `afterMs` of the order. */
  readonly onOverdue: (afterMs: number) => void
  /** The worker requests a reload and waits for the result. */
  readonly onReloadRequested: () => void
  /** Receives the last counters of a worker when it ends. */
  readonly onEnd: (lastSnapshot: MetricsSnapshot) => void
}

/** One worker slot: its process, which is replaced when it dies. */
export class WorkerProcess {
  private readonly delay = new RestartDelay()
  private worker: Worker | undefined
  /** Waiting for the result of a reload. */
  private reloadRequester: Worker | undefined
  /** Messages to send once it listens. */
  private waiting: PrimaryMessage[] | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosing = false
  private lastMetrics: MetricsSnapshot = []
  private nextId = 0

  constructor(private readonly options: WorkerProcessOptions) {}

  /** Last metrics of this worker, or of its predecessor; empty if there are none. */
  get known(): MetricsSnapshot {
    return this.lastMetrics
  }

  /** Resolves with the address once a worker listens; with undefined if it exited before, or the slot was stopped. */
  fill(): Promise<string | undefined> {
    if (this.isClosing) return Promise.resolve(undefined)
    const worker = this.options.fork()
    const startedAtMs = performance.now()
    this.worker = worker
    this.waiting = [{ order: 'begin', ...this.options.start() }]
    return new Promise((resolve) => {
      worker.on('message', (news: WorkerMessage) => {
        if (news.news === 'here') this.sendWaiting()
        else if (news.news === 'listening') resolve(news.address)
        else if (news.news === 'asks-reload') {
          this.reloadRequester = worker
          this.options.onReloadRequested()
        }
      })
      worker.once('exit', (code: number | null, signal: string | null) => {
        resolve(undefined)
        this.worker = undefined
        this.options.onEnd(this.lastMetrics)
        this.lastMetrics = []
        if (!this.isClosing) this.refill(code, signal, performance.now() - startedAtMs)
      })
    })
  }

  /** Sends the result of a reload that this worker did not request. */
  reload(result: ReloadResult): void {
    this.send({ order: 'reload', result })
  }

  /** Sends the result of the reload that this worker requested. */
  sendResult(result: ReloadResult): void {
    // A replacement of the worker that requested it is treated like all others.
    if (this.reloadRequester === this.worker) this.send({ order: 'answer', result })
    else if ('config' in result) this.reload(result)
  }

  /** Resolves when the worker has exited: true if it did so by itself. It is killed after `deadlineMs`. */
  drain(signal: string, deadlineMs: number): Promise<boolean> {
    this.isClosing = true
    clearTimeout(this.timer)
    const { worker } = this
    if (worker === undefined) return Promise.resolve(true)
    this.send({ order: 'drain', signal })
    this.timer = setTimeout(() => {
      this.options.onOverdue(deadlineMs)
      void this.end()
    }, deadlineMs)
    return new Promise((resolve) => {
      worker.once('exit', (code: number | null, endedBy: string | null) => {
        clearTimeout(this.timer)
        // A terminal sends its signal to all processes; a worker killed by it at start has served nothing.
        resolve(code === 0 || endedBy === signal)
      })
    })
  }

  /** Ends the worker at once, with time to save what is not stored; then kills it. Resolves when it has exited. */
  end(): Promise<void> {
    this.isClosing = true
    clearTimeout(this.timer)
    const { worker } = this
    if (worker === undefined) return Promise.resolve()
    this.send({ order: 'exit' })
    this.timer = setTimeout(() => worker.process.kill('SIGKILL'), SAVE_MS)
    return new Promise((resolve) => {
      worker.once('exit', () => {
        clearTimeout(this.timer)
        resolve()
      })
    })
  }

  /** Requests the worker's metrics; resolves once `known` is updated, or cannot be. */
  async ask(): Promise<void> {
    const { worker } = this
    if (worker === undefined) return
    const id = this.nextId++
    const sent = metricsOf(worker, id)
    this.send({ order: 'metrics', id })
    const snapshot = await sent
    if (this.worker === worker) this.lastMetrics = completed(snapshot, this.lastMetrics)
  }

  private refill(code: number | null, signal: string | null, livedMs: number): void {
    const delayMs = this.delay.after(livedMs)
    this.options.onDeath({ code, signal, delayMs })
    this.timer = setTimeout(() => void this.fill(), delayMs)
  }

  private sendWaiting(): void {
    const waiting = this.waiting ?? []
    this.waiting = undefined
    for (const order of waiting) this.send(order)
  }

  private send(order: PrimaryMessage): void {
    if (this.waiting !== undefined) this.waiting.push(order)
    // One that is about to die is replaced when it has.
    else if (this.worker?.isConnected() === true) this.worker.send(order, () => undefined)
  }
}
