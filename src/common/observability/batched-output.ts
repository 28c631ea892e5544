import { write, writeSync } from 'node:fs'

/** How long a line may wait for company; the log of a quiet gateway is still as good as live. */
const FLUSH_INTERVAL_MS = 100

/** A reader of the log that stands still must not fill the memory: lines beyond this are counted instead of kept. */
const MAXIMUM_WAITING_CHARACTERS = 8 * 1024 * 1024

/**
 * Lines to a file descriptor in batches: one system call, one encoding and one turn of the thread pool for all lines of
 * a tenth of a second. Whoever logs never waits. Writing each line by itself, or in the small batches of a general
 * stream, costs more than the rest of a relayed call's log.
 */
export class BatchedOutput {
  private waiting: string[] = []
  private waitingCharacters = 0
  private dropped = 0
  private isWriting = false
  private timer: NodeJS.Timeout | undefined

  constructor(private readonly fileDescriptor: number) {
    process.on('exit', () => {
      this.flushSync()
    })
  }

  write(line: string): void {
    if (this.waitingCharacters > MAXIMUM_WAITING_CHARACTERS) {
      this.dropped++
      return
    }
    this.waiting.push(line)
    this.waitingCharacters += line.length
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      if (!this.isWriting) this.writeBatch()
    }, FLUSH_INTERVAL_MS).unref()
  }

  /** For the end of the process: what still waits is written before this returns. */
  flushSync(): void {
    let batch = this.takeBatch()
    while (batch.length > 0) {
      try {
        batch = batch.subarray(writeSync(this.fileDescriptor, batch))
      } catch (error) {
        // A full pipe asks to try again; a closed one has no reader left.
        if (!isBusy(error)) return
      }
    }
  }

  private writeBatch(rest = this.takeBatch()): void {
    if (rest.length === 0) return
    this.isWriting = true
    write(this.fileDescriptor, rest, (error, written) => {
      this.isWriting = false
      if (error !== null && !isBusy(error)) return
      const unwritten = rest.subarray(error === null ? written : 0)
      if (unwritten.length > 0)
        setImmediate(() => {
          this.writeBatch(unwritten)
        })
      else if (this.timer === undefined) this.writeBatch()
    })
  }

  private takeBatch(): Buffer {
    if (this.dropped > 0) {
      const time = new Date().toISOString()
      this.waiting.push(`${JSON.stringify({ level: 40, time, dropped: this.dropped, msg: 'log lines dropped' })}\n`)
      this.dropped = 0
    }
    const batch = Buffer.from(this.waiting.join(''))
    this.waiting = []
    this.waitingCharacters = 0
    return batch
  }
}

const isBusy = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EAGAIN'
