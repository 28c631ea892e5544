import { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { isNativeError } from 'node:util/types'
import { setFlagsFromString } from 'node:v8'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'

/** No statement of the gateway takes a fraction of it: a worker that is silent for so long will stay so. */
const SILENCE_MS = 60_000

interface Chunk {
  readonly chunk: Buffer
}

/**
 * What the driver takes for its socket: a port to the worker thread that PostgreSQL runs in. The driver writes whole messages
 * of the wire protocol, and the worker answers each write once; a port that closes is a connection that was lost.
 */
export class WorkerSocket extends Duplex {
  private pending = 0
  private silence: NodeJS.Timeout | undefined

  constructor(
    private readonly port: MessagePort,
    private readonly onSilence: () => void,
  ) {
    super()
    port.on('message', (answer: Uint8Array) => {
      this.receive(answer)
    })
    port.on('close', () => {
      this.destroy()
    })
  }

  /** As of a `net.Socket`, which the driver expects. */
  connect(): this {
    process.nextTick(() => this.emit('connect'))
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {
    // An answer is in memory when it arrives; holding it back would save nothing.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.send(chunk)
    done()
  }

  /** The driver corks the messages of one query: they travel, and are worked off, together. */
  override _writev(chunks: Chunk[], done: () => void): void {
    this.send(Buffer.concat(chunks.map(({ chunk }) => chunk)))
    done()
  }

  override _final(done: () => void): void {
    this.push(null)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.silence)
    this.port.close()
    done(error)
  }

  private send(messages: Buffer): void {
    // A copy of its own, which can be handed over: the driver's buffers are parts of larger ones.
    const bytes = Uint8Array.from(messages)
    this.pending += 1
    this.silence ??= setTimeout(this.onSilence, SILENCE_MS)
    this.port.postMessage(bytes, [bytes.buffer])
  }

  private receive(answer: Uint8Array): void {
    this.pending -= 1
    clearTimeout(this.silence)
    this.silence = this.pending > 0 ? setTimeout(this.onSilence, SILENCE_MS) : undefined
    if (answer.length > 0) this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.length))
  }
}

const FILE = fileURLToPath(new URL('./postgres.worker.mjs', import.meta.url))
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
    // Nothing but the store is WebAssembly. Optimized by V8 it takes 70 MB more, seconds of a processor until it is, and a fifth less for each
    // record afterwards; stores with many records are on PostgreSQL (docs/decisions/0043).
    setFlagsFromString('--liftoff-only')
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
