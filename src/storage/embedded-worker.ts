import { Duplex } from 'node:stream'
import type { MessagePort } from 'node:worker_threads'

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
  private unanswered = 0
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
    this.unanswered += 1
    this.silence ??= setTimeout(this.onSilence, SILENCE_MS)
    this.port.postMessage(bytes, [bytes.buffer])
  }

  private receive(answer: Uint8Array): void {
    this.unanswered -= 1
    clearTimeout(this.silence)
    this.silence = this.unanswered > 0 ? setTimeout(this.onSilence, SILENCE_MS) : undefined
    if (answer.length > 0) this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.length))
  }
}
