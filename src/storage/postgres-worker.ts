import { fileURLToPath } from 'node:url'
import { isNativeError } from 'node:util/types'
import { MessageChannel, Worker } from 'node:worker_threads'
import { WorkerSocket } from './embedded-worker.js'

const FILE = fileURLToPath(new URL('../common/database/embedded/postgres.worker.mjs', import.meta.url))
const READY = 'ready'
const CLOSE = 'close'
/** A clean end takes a fraction of a second; without it the next start replays what was written, and loses nothing. */
const CLOSE_MS = 10_000

/** The thread that runs the embedded PostgreSQL. */
export class PostgresWorker {
  /** Resolves when the thread has ended, with the reason. */
  readonly died: Promise<unknown>

  private constructor(private readonly worker: Worker) {
    let reason: unknown = new Error('the thread of the embedded store has ended')
    worker.on('error', (error) => {
      reason = error
    })
    this.died = new Promise((resolve) => {
      worker.on('exit', () => {
        resolve(reason)
      })
    })
  }

  /** Starts PostgreSQL on the files in a directory, which it makes when there is none. Rejects with what went wrong. */
  static async start(directory: string): Promise<PostgresWorker> {
    const thread = new Worker(FILE, { name: 'store', workerData: { directory }, env: {}, execArgv: [] })
    const worker = new PostgresWorker(thread)
    const ready = new Promise((resolve) => {
      thread.once('message', resolve)
    })
    const failure = await Promise.race([ready, worker.died])
    if (failure === READY) return worker
    throw isNativeError(failure) ? failure : new Error('the thread of the embedded store did not start')
  }

  /** A new connection, which takes the place of the one before. */
  connect(): WorkerSocket {
    const { port1, port2 } = new MessageChannel()
    this.worker.postMessage(port2, [port2])
    return new WorkerSocket(port1, () => {
      this.kill()
    })
  }

  /** Ends it at once, as the loss of the process would: what was acknowledged is on the disk. */
  kill(): void {
    void this.worker.terminate()
  }

  async close(): Promise<void> {
    this.worker.postMessage(CLOSE)
    const patience = setTimeout(() => {
      this.kill()
    }, CLOSE_MS)
    await this.died
    clearTimeout(patience)
  }
}
