import { write, writeSync } from 'node:fs'
import { WaitingLines } from './batched-output-lines.js'
import { isPipeFull, napForPipe, napsWithin, neverWaits, ownPipe, placeOf } from './full-pipe.js'

/** How long a line may wait for company; the log of a quiet gateway is still as good as live. */
const FLUSH_INTERVAL_MS = 100

/** When a full pipe is tried again. */
const RETRY_INTERVAL_MS = 50

/** The same when it has just taken something: its reader is at work. */
const NEXT_PART_MS = 1

/** At the end of the process a full pipe is tried so long in all before its reader is taken for dead. */
const LAST_NAPS = napsWithin(1000)

const NOTHING = Buffer.alloc(0)

/**
 * Lines to a file descriptor in batches: one encoding and one system call for all lines of a tenth of a second. Whoever
 * logs never waits. Writing each line by itself, or in the small batches of a general stream, costs more than the rest of
 * a relayed call's log.
 *
 * What never waits is written here, so that it is always known how much was taken. What may wait for its reader is left
 * to the thread pool: such a write is whole when it ends.
 */
export class BatchedOutput {
  private readonly lines = new WaitingLines()
  /** What is still to be written of the last batch. */
  private unwritten: Buffer = NOTHING
  /** The thread pool is writing it. */
  private isCallRunning = false
  /** Where that began, in a file. */
  private callPlace: string | undefined
  private timer: NodeJS.Timeout | undefined
  private retryTimer: NodeJS.Timeout | undefined
  private isEnding = false
  private napsLeft = LAST_NAPS
  private readonly fileDescriptor: number

  constructor(fileDescriptor: number) {
    this.fileDescriptor = ownPipe(fileDescriptor) ?? fileDescriptor
    process.on('exit', () => {
      this.isEnding = true
      this.flushSync()
    })
  }

  write(line: string): void {
    this.lines.add(line)
    if (this.isEnding) {
      // Of those who listen for the end of the process, some hear of it later than this.
      this.flushSync()
      return
    }
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      this.proceed()
    }, FLUSH_INTERVAL_MS).unref()
  }

  /**
   * For the end of the process: what still waits is written before this returns, unless the reader of a full pipe stands
   * still for about a second. Where writes may wait, they wait for their reader now as well.
   */
  flushSync(): void {
    clearTimeout(this.retryTimer)
    if (this.isCallRunning) this.leaveToCall()
    this.unwritten = Buffer.concat([this.unwritten, this.lines.take()])
    while (this.unwritten.length > 0) {
      if (this.push()) continue
      if (this.napsLeft-- <= 0) return
      napForPipe()
    }
  }

  /**
   * Node ends a running call before it exits, so its batch is not written again. It was first, so it goes first. A file
   * tells when it has; of a socket nothing does, so that the naps are its reader's.
   */
  private leaveToCall(): void {
    this.isCallRunning = false
    this.unwritten = NOTHING
    for (; this.napsLeft > 0 && placeOf(this.fileDescriptor) === this.callPlace; this.napsLeft--) napForPipe()
  }

  /** Writes on, unless somebody is at it. */
  private proceed(): void {
    if (this.isCallRunning || this.retryTimer !== undefined) return
    if (this.unwritten.length === 0) this.unwritten = this.lines.take()
    if (this.unwritten.length === 0) return
    if (neverWaits(this.fileDescriptor)) this.goOn(this.push())
    else this.call()
  }

  /**
   * Writes what there is room for. False: there was none, and it is to be tried again. True also when nobody is left to
   * read.
   */
  private push(): boolean {
    try {
      this.unwritten = this.unwritten.subarray(writeSync(this.fileDescriptor, this.unwritten))
      return true
    } catch (error) {
      return this.isGone(error)
    }
  }

  private call(): void {
    this.isCallRunning = true
    this.callPlace = placeOf(this.fileDescriptor)
    write(this.fileDescriptor, this.unwritten, (error, written) => {
      this.isCallRunning = false
      if (error === null) this.unwritten = this.unwritten.subarray(written)
      this.goOn(error === null || this.isGone(error))
    })
  }

  /** A full pipe asks to try again; a closed one has no reader left, and needs nothing more. */
  private isGone(error: unknown): boolean {
    if (isPipeFull(error)) return false
    this.unwritten = NOTHING
    return true
  }

  private goOn(hasRoom: boolean): void {
    if (this.unwritten.length === 0) {
      // What came meanwhile has waited long enough.
      if (this.timer === undefined) this.proceed()
      return
    }
    const delayMs = hasRoom ? NEXT_PART_MS : RETRY_INTERVAL_MS
    this.retryTimer = setTimeout(() => {
      this.retryTimer = undefined
      this.proceed()
    }, delayMs).unref()
  }
}
