import { constants, openSync, readFileSync, write, writeSync } from 'node:fs'
import { hasCode } from '../core/errors.js'

/** Memory limit while the reader of the log is blocked: further lines are counted, not kept. */
const MAXIMUM_BYTES = 8 * 1024 * 1024

const PAGE_BYTES = 65_536
/** Maximum UTF-8 bytes of one UTF-16 code unit. */
const BYTES_PER_UNIT = 3

/**
 * Lines waiting to be written, as bytes: strings would be copied by every scavenge of the young generation that they survive.
 */
class WaitingLines {
  private fullPages: Buffer[] = []
  private page = Buffer.allocUnsafeSlow(PAGE_BYTES)
  private pageUsed = 0
  private bytes = 0
  private dropped = 0

  add(line: string): void {
    if (this.bytes > MAXIMUM_BYTES) this.dropped++
    else this.append(line)
  }

  /** Takes all lines; the last one reports dropped lines. */
  take(): Buffer {
    if (this.dropped > 0) {
      const time = new Date().toISOString()
      this.append(`${JSON.stringify({ level: 40, time, dropped: this.dropped, msg: 'log lines dropped' })}\n`)
      this.dropped = 0
    }
    // Copied, as the page is reused at once.
    const batch = Buffer.concat([...this.fullPages, this.page.subarray(0, this.pageUsed)], this.bytes)
    this.fullPages = []
    this.pageUsed = 0
    this.bytes = 0
    return batch
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
    this.bytes += written
  }
}

const NAP_MS = 10

/** Whether a write failed because the pipe is full: its reader is slow or blocked. */
export const isPipeFull = (error: unknown): boolean => hasCode(error, 'EAGAIN')

/** Number of calls of `napForPipe` for a wait of this length. */
export const napsWithin = (milliseconds: number): number => milliseconds / NAP_MS

/** Blocks the whole process for 10 ms, so that the reader can catch up: only at the end of the process. */
export function napForPipe(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, NAP_MS)
}

/**
 * Reopens a pipe or a terminal in non-blocking mode. That mode belongs to the open file, which a descriptor shares with other
 * processes; the reopened one is not shared. Undefined for files and sockets, without /proc, and for a pipe of another user.
 */
function ownPipe(fileDescriptor: number): number | undefined {
  try {
    if (hasPlaces(fileDescriptor)) return undefined
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
    return openSync(`/proc/self/fd/${fileDescriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY)
  } catch {
    return undefined
  }
}

/** Whether the descriptor is non-blocking at present: a write takes what fits and returns. */
function neverWaits(fileDescriptor: number): boolean {
  const flags = factOf(fileDescriptor, /^flags:\s*([0-7]+)$/m)
  return flags !== undefined && (Number.parseInt(flags, 8) & constants.O_NONBLOCK) !== 0
}

/**
 * Offset of the next write to a file, which moves once a write is complete. Constant for pipes and sockets, which have
 * no offset; undefined without /proc.
 */
const placeOf = (fileDescriptor: number): string | undefined => factOf(fileDescriptor, /^pos:\s*(\d+)$/m)

/**
 * Reads a field of Linux' fdinfo. As UTF-8, for which Node 20 has a separate code path: reading bytes here, while modules
 * are still being loaded, has left some of them empty.
 */
function factOf(fileDescriptor: number, fact: RegExp): string | undefined {
  try {
    return fact.exec(readFileSync(`/proc/self/fdinfo/${fileDescriptor}`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Whether the descriptor is seekable. Tested by an empty positioned write, not by `fstat`: see `factOf`. */
function hasPlaces(fileDescriptor: number): boolean {
  try {
    writeSync(fileDescriptor, Buffer.alloc(0), 0, 0, 0)
    return true
  } catch (error) {
    if (hasCode(error, 'ESPIPE')) return false
    throw error
  }
}

/** Maximum delay of a line in a batch. */
const FLUSH_INTERVAL_MS = 100

/** Retry interval for a full pipe. */
const RETRY_INTERVAL_MS = 50

/** Retry interval if the pipe has just taken something: its reader is active. */
const NEXT_PART_MS = 1

/** At the end of the process, total time for a full pipe before its reader is considered dead. */
const LAST_NAPS = napsWithin(1000)

const NOTHING = Buffer.alloc(0)

/**
 * Writes lines to a file descriptor in batches: one encoding and one system call for all lines of a tenth of a second.
 * Logging never blocks. Single writes, or the small batches of a general stream, cost more than the rest of
 * a relayed call's log.
 *
 * Non-blocking descriptors are written here, so that the number of bytes taken is always known. Blocking ones are left
 * to the thread pool: such a write is complete when it ends.
 */
export class BatchedOutput {
  private readonly lines = new WaitingLines()
  /** Unwritten rest of the last batch. */
  private unwritten: Buffer = NOTHING
  /** The thread pool is writing it. */
  private isCallRunning = false
  /** File offset at which that write began. */
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
      // Other listeners for the end of the process, which may log, run later.
      this.flushSync()
      return
    }
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      this.proceed()
    }, FLUSH_INTERVAL_MS).unref()
  }

  /**
   * For the end of the process: all lines are written before this returns, unless the reader of a full pipe is blocked
   * for about a second. Writes to a blocking descriptor block here.
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
   * Node completes a running write before it exits, so its batch is not written again, and must come first. A file shows
   * its completion by the offset; a socket shows nothing, so that the pauses give its reader time.
   */
  private leaveToCall(): void {
    this.isCallRunning = false
    this.unwritten = NOTHING
    for (; this.napsLeft > 0 && placeOf(this.fileDescriptor) === this.callPlace; this.napsLeft--) napForPipe()
  }

  /** Continues writing, unless a write is in progress. */
  private proceed(): void {
    if (this.isCallRunning || this.retryTimer !== undefined) return
    if (this.unwritten.length === 0) this.unwritten = this.lines.take()
    if (this.unwritten.length === 0) return
    if (neverWaits(this.fileDescriptor)) this.goOn(this.push())
    else this.call()
  }

  /**
   * Writes what fits. False: the pipe is full, and the write has to be retried. True also if the reader has closed the pipe.
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

  /** A full pipe is retried; a closed one has no reader and is given up. */
  private isGone(error: unknown): boolean {
    if (isPipeFull(error)) return false
    this.unwritten = NOTHING
    return true
  }

  private goOn(hasRoom: boolean): void {
    if (this.unwritten.length === 0) {
      // Lines added meanwhile are due, too.
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
