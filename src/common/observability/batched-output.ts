import { write, writeSync } from 'node:fs'
import { isPipeFull, napForPipe, napsWithin } from './full-pipe.js'

/** How long a line may wait for company; the log of a quiet gateway is still as good as live. */
const FLUSH_INTERVAL_MS = 100

/** A reader of the log that stands still must not fill the memory: lines beyond this are counted instead of kept. */
const MAXIMUM_WAITING_BYTES = 8 * 1024 * 1024

const PAGE_BYTES = 65_536
/** UTF-8 needs at most this for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3

/** When a full pipe is tried again. */
const RETRY_INTERVAL_MS = 50

/** At the end of the process a full pipe is tried so long before its reader is taken for dead. */
const MAXIMUM_NAPS = napsWithin(1000)

const NOTHING = Buffer.alloc(0)

/**
 * Lines to a file descriptor in batches: one system call, one encoding and one turn of the thread pool for all lines of
 * a tenth of a second. Whoever logs never waits. Writing each line by itself, or in the small batches of a general
 * stream, costs more than the rest of a relayed call's log.
 */
export class BatchedOutput {
  /** Lines wait as bytes: as strings they would be copied by every collection of the young heap they survive. */
  private fullPages: Buffer[] = []
  private page = Buffer.allocUnsafeSlow(PAGE_BYTES)
  private pageUsed = 0
  private waitingBytes = 0
  private dropped = 0
  /** What a full pipe left of the last batch, until it is tried again. */
  private unwritten: Buffer = NOTHING
  private isCallRunning = false
  private timer: NodeJS.Timeout | undefined
  private retryTimer: NodeJS.Timeout | undefined

  constructor(private readonly fileDescriptor: number) {
    process.on('exit', () => {
      this.flushSync()
    })
  }

  write(line: string): void {
    if (this.waitingBytes > MAXIMUM_WAITING_BYTES) {
      this.dropped++
      return
    }
    this.append(line)
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      if (!this.isCallRunning && this.unwritten.length === 0) this.writeBatch(this.takeBatch())
    }, FLUSH_INTERVAL_MS).unref()
  }

  /**
   * For the end of the process: what still waits is written before this returns, unless the reader of a full pipe stands
   * still for about a second.
   */
  flushSync(): void {
    // Node ends a running system call before it exits, so its batch is not written again. It was first, so it goes first.
    if (this.isCallRunning) napForPipe()
    clearTimeout(this.retryTimer)
    let batch = Buffer.concat([this.unwritten, this.takeBatch()])
    this.unwritten = NOTHING
    for (let naps = 0; batch.length > 0;) {
      try {
        batch = batch.subarray(writeSync(this.fileDescriptor, batch))
      } catch (error) {
        // A full pipe asks to try again; a closed one has no reader left.
        if (!isPipeFull(error) || naps === MAXIMUM_NAPS) return
        naps++
        napForPipe()
      }
    }
  }

  private writeBatch(batch: Buffer): void {
    if (batch.length === 0) return
    this.isCallRunning = true
    write(this.fileDescriptor, batch, (error, written) => {
      this.isCallRunning = false
      if (isPipeFull(error)) this.retryLater(batch)
      else if (error === null && written < batch.length) this.writeBatch(batch.subarray(written))
      else if (this.timer === undefined) this.writeBatch(this.takeBatch())
    })
  }

  private retryLater(batch: Buffer): void {
    this.unwritten = batch
    this.retryTimer = setTimeout(() => {
      this.unwritten = NOTHING
      this.writeBatch(batch)
    }, RETRY_INTERVAL_MS).unref()
  }

  private append(line: string): void {
    const mostBytes = line.length * BYTES_PER_UNIT
    if (mostBytes > this.page.length - this.pageUsed) {
      this.fullPages.push(this.page.subarray(0, this.pageUsed))
      this.page = Buffer.allocUnsafeSlow(Math.max(PAGE_BYTES, mostBytes))
      this.pageUsed = 0
    }
    const written = this.page.write(line, this.pageUsed)
    this.pageUsed += written
    this.waitingBytes += written
  }

  private takeBatch(): Buffer {
    if (this.dropped > 0) {
      const time = new Date().toISOString()
      this.append(`${JSON.stringify({ level: 40, time, dropped: this.dropped, msg: 'log lines dropped' })}\n`)
      this.dropped = 0
    }
    // A copy, as the page is used again at once.
    const batch = Buffer.concat([...this.fullPages, this.page.subarray(0, this.pageUsed)], this.waitingBytes)
    this.fullPages = []
    this.pageUsed = 0
    this.waitingBytes = 0
    return batch
  }
}
