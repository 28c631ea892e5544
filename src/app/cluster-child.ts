import type { Worker } from 'node:cluster'
import type { Readable } from 'node:stream'
import type { GatewayConfig } from '../config/settings.js'
import type { LineSink } from '../observability/logger.js'
import { mergedSnapshot, type MetricsSnapshot } from '../observability/metrics.js'

/** What became of the configuration when the primary read it again. */
export type ReloadResult =
  | {
      readonly config: GatewayConfig
      /** Settings that changed but are in `config` as they run. */
      readonly needsRestart: readonly string[]
    }
  | { readonly faults: readonly string[] }

/** What a worker begins with. */
export interface WorkerStart {
  readonly config: GatewayConfig
}

/** What the primary tells a worker. Signals to a worker itself are ignored: terminals and service managers send them to all. */
export type PrimaryMessage =
  | ({ readonly order: 'begin' } & WorkerStart)
  | { readonly order: 'reload'; readonly result: ReloadResult }
  /** The same, to the worker that had asked. */
  | { readonly order: 'answer'; readonly result: ReloadResult }
  | { readonly order: 'drain'; readonly signal: string }
  /** Now, whatever runs; what is not stored is kept. */
  | { readonly order: 'exit' }
  | { readonly order: 'metrics'; readonly id: number }

/** What a worker tells the primary. What is sent to a worker that does not listen yet is lost: it says first when it does. */
export type WorkerMessage =
  | { readonly news: 'here' }
  /** The administrator wants the configuration to be read again. */
  | { readonly news: 'asks-reload' }
  | { readonly news: 'listening'; readonly address: string }
  | { readonly news: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }

/** What only ever grows. A gauge of a process that is gone tells nothing. */
const GROWING: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

/** The metrics a worker sent, and the last known ones of those it could not send in time: sums over workers must not go down. */
export function completed(sent: MetricsSnapshot, before: MetricsSnapshot): MetricsSnapshot {
  const names = new Set(sent.map(nameOf))
  return [...sent, ...before.filter((metric) => grows(metric) && !names.has(nameOf(metric)))]
}

const grows = (metric: object): boolean => GROWING.has(Reflect.get(metric, 'type'))
const nameOf = (metric: object): unknown => Reflect.get(metric, 'name')

/** What workers that have ended had counted: without it, the sums over all workers would go down when one dies. */
export class EndedWorkers {
  private merged: Promise<MetricsSnapshot> = Promise.resolve([])

  add(last: MetricsSnapshot): void {
    const grown = last.filter(grows)
    // Added up, as there may be any number of them.
    if (grown.length > 0) this.merged = this.merged.then((merged) => mergedSnapshot([merged, grown]))
  }

  snapshot(): Promise<MetricsSnapshot> {
    return this.merged
  }
}

/**
 * Lines of JSON objects, each with the number of its worker in front: one log holds those of all of them. What is no
 * object stays as it is.
 */
export const numberedLines = (worker: number, sink: LineSink): LineSink => ({
  write: (line) => {
    sink.write(line.startsWith('{"') ? `{"worker":${worker},${line.slice(1)}` : line)
  },
})

const SHORTEST_MS = 100
const LONGEST_MS = 30_000

/** A worker that ran this long did not die of its start. */
const SETTLED_MS = 60_000

/** How long a place stays empty after its worker died: longer each time while they die young. */
export class RestartDelay {
  private early = 0

  /** In milliseconds, after a worker that lived so long. */
  after(livedMs: number): number {
    this.early = livedMs >= SETTLED_MS ? 0 : this.early + 1
    return Math.min(SHORTEST_MS * 2 ** Math.max(0, this.early - 1), LONGEST_MS)
  }
}

/** Of a worker that does not tell its metrics by then there is what it had counted before. */
const METRICS_DEADLINE_MS = 3_000

/** What a worker tells when it is asked by that id; nothing when it does not in time, or ends before. */
function metricsOf(worker: Worker, id: number): Promise<MetricsSnapshot> {
  return new Promise((resolve) => {
    const hear = (news: WorkerMessage): void => {
      if (news.news === 'metrics' && news.id === id) end(news.snapshot)
    }
    const leave = (): void => {
      end([])
    }
    const end = (snapshot: MetricsSnapshot): void => {
      clearTimeout(timer)
      worker.off('message', hear)
      worker.off('exit', leave)
      resolve(snapshot)
    }
    const timer = setTimeout(leave, METRICS_DEADLINE_MS)
    worker.on('message', hear)
    worker.once('exit', leave)
  })
}

/**
 * Brings what workers write to one sink, by whole lines. Each writes to a pipe of its own: in one that several processes
 * write to, a full pipe takes parts of what they have, and lines longer than PIPE_BUF (4096 bytes) are torn at any time.
 */
export class WorkerLines {
  private readonly open = new Set<Promise<void>>()

  constructor(private readonly sink: LineSink) {}

  /** What a worker says from now on, until it ends. */
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

/** What a worker may take to keep what is not stored: ten thousands of rows, on a disk that is slow. */
const KEEPING_MS = 2_000

interface WorkerProcessOptions {
  readonly fork: () => Worker
  /** For a worker that begins now. */
  readonly start: () => WorkerStart
  /** The worker died without an order to end, and another one is started after `delayMs`. */
  readonly onDeath: (death: { readonly code: number | null; readonly signal: string | null; delayMs: number }) => void
  /** The worker did not end within `afterMs` of the order. */
  readonly onOverdue: (afterMs: number) => void
  /** The worker wants the configuration to be read again; it waits for an answer. */
  readonly onReloadRequested: () => void
  /** What the last worker here had counted is handed over when it ends. */
  readonly onEnd: (lastSnapshot: MetricsSnapshot) => void
}

/** One of the workers: the process that fills the place, and the next one when it dies. */
export class WorkerProcess {
  private readonly delay = new RestartDelay()
  private worker: Worker | undefined
  /** Waits for an answer about the configuration. */
  private asker: Worker | undefined
  /** Sent to it once it listens. */
  private waiting: PrimaryMessage[] | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosing = false
  private lastMetrics: MetricsSnapshot = []
  private nextId = 0

  constructor(private readonly options: WorkerProcessOptions) {}

  /** The last metrics of the worker here, or of the one before it when it ended; nothing when there is none. */
  get known(): MetricsSnapshot {
    return this.lastMetrics
  }

  /** Resolves with the address once a worker here listens; with undefined when it ended before, or none is wanted any more. */
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
          this.asker = worker
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

  /** The result of a reload that this worker had not asked for. */
  reload(result: ReloadResult): void {
    this.send({ order: 'reload', result })
  }

  /** What became of the reload that the worker here had asked for. */
  sendResult(result: ReloadResult): void {
    // A worker that replaced the one that asked is like all others.
    if (this.asker === this.worker) this.send({ order: 'answer', result })
    else if ('config' in result) this.reload(result)
  }

  /** Resolves when the worker is gone: whether it ended as it should. After `deadlineMs` it is ended. */
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
        // A terminal sends its signal to all; one that has just begun does not listen for it yet, and has served nothing.
        resolve(code === 0 || endedBy === signal)
      })
    })
  }

  /** Now, whatever it does, but with the time to keep what is not stored; then it is killed. Resolves when it is gone. */
  end(): Promise<void> {
    this.isClosing = true
    clearTimeout(this.timer)
    const { worker } = this
    if (worker === undefined) return Promise.resolve()
    this.send({ order: 'exit' })
    this.timer = setTimeout(() => worker.process.kill('SIGKILL'), KEEPING_MS)
    return new Promise((resolve) => {
      worker.once('exit', () => {
        clearTimeout(this.timer)
        resolve()
      })
    })
  }

  /** Asks the worker for what it has counted; resolves once `known` is as new as it gets. */
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
