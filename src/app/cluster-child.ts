import type { Worker } from 'node:cluster'
import type { MetricsSnapshot } from '../observability/metrics.js'
import { completed } from './ended-workers.js'
import { RestartDelay } from './restart-delay.js'
import { toldBy } from './told-metrics.js'
import type { NewsOfWorker, OrderToWorker, ReloadVerdict, WorkerStart } from './worker-messages.js'

/** What a worker may take to keep what is not stored: ten thousands of rows, on a disk that is slow. */
const KEEPING_MS = 2_000

export interface PlaceOptions {
  readonly fork: () => Worker
  /** For a worker that begins now. */
  readonly start: () => WorkerStart
  /** The worker died although nobody told it to, and another one comes after `delayMs`. */
  readonly onDeath: (death: { readonly code: number | null; readonly signal: string | null; delayMs: number }) => void
  /** The worker did not end within `afterMs` of having been told to. */
  readonly onOverdue: (afterMs: number) => void
  /** The worker wants the configuration to be read again; it waits for an answer. */
  readonly onReloadAsked: () => void
  /** What the last worker here had counted is handed over when it ends. */
  readonly onEnd: (lastSnapshot: MetricsSnapshot) => void
}

/** One of the workers: the process that fills the place, and the next one when it dies. */
export class WorkerPlace {
  private readonly delay = new RestartDelay()
  private worker: Worker | undefined
  /** Waits for an answer about the configuration. */
  private asker: Worker | undefined
  /** What it is to be told once it listens. */
  private waiting: OrderToWorker[] | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosing = false
  private told: MetricsSnapshot = []
  private nextId = 0

  constructor(private readonly options: PlaceOptions) {}

  /** What the worker here told last, or the one before it had when it ended; nothing when nobody is here. */
  get known(): MetricsSnapshot {
    return this.told
  }

  /** Resolves with the address once a worker here listens; with undefined when it ended before, or none is wanted any more. */
  fill(): Promise<string | undefined> {
    if (this.isClosing) return Promise.resolve(undefined)
    const worker = this.options.fork()
    const startedAtMs = performance.now()
    this.worker = worker
    this.waiting = [{ order: 'begin', ...this.options.start() }]
    return new Promise((resolve) => {
      worker.on('message', (news: NewsOfWorker) => {
        if (news.news === 'here') this.sendWaiting()
        else if (news.news === 'listening') resolve(news.address)
        else if (news.news === 'asks-reload') {
          this.asker = worker
          this.options.onReloadAsked()
        }
      })
      worker.once('exit', (code: number | null, signal: string | null) => {
        resolve(undefined)
        this.worker = undefined
        this.options.onEnd(this.told)
        this.told = []
        if (!this.isClosing) this.refill(code, signal, performance.now() - startedAtMs)
      })
    })
  }

  /** What became of a reload that nobody here had asked for. */
  reload(verdict: ReloadVerdict): void {
    this.send({ order: 'reload', verdict })
  }

  /** What became of the reload that the worker here had asked for. */
  answer(verdict: ReloadVerdict): void {
    // Whoever came after the one that asked is no wiser than all others.
    if (this.asker === this.worker) this.send({ order: 'answer', verdict })
    else if ('config' in verdict) this.reload(verdict)
  }

  /** Resolves when nobody is left here: whether the worker ended as it should. After `deadlineMs` it is ended. */
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

  /** Now, whatever it does, but with the time to keep what is not stored; then it is killed. Resolves when nobody is left here. */
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
    const told = toldBy(worker, id)
    this.send({ order: 'metrics', id })
    const snapshot = await told
    if (this.worker === worker) this.told = completed(snapshot, this.told)
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

  private send(order: OrderToWorker): void {
    if (this.waiting !== undefined) this.waiting.push(order)
    // One that is about to die is replaced when it has.
    else if (this.worker?.isConnected() === true) this.worker.send(order, () => undefined)
  }
}
