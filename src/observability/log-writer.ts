import { constants, openSync, readFileSync, write, writeSync } from 'node:fs'
import { hasCode } from '../core/errors.js'

/** A reader of the log that stands still must not fill the memory: lines beyond this are counted instead of kept. */
const MAXIMUM_BYTES = 8 * 1024 * 1024

const PAGE_BYTES = 65_536
/** UTF-8 needs at most this for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3

/**
 * Lines that wait to be written, as bytes: as strings they would be copied by every collection of the young heap they
 * survive.
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

  /** All of them, to whoever writes them now; the last one tells of those for which there was no room. */
  take(): Buffer {
    if (this.dropped > 0) {
      const time = new Date().toISOString()
      this.append(`${JSON.stringify({ level: 40, time, dropped: this.dropped, msg: 'log lines dropped' })}\n`)
      this.dropped = 0
    }
    // A copy, as the page is used again at once.
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

/** Whether a write found no room in a pipe: its reader is slow, or stands still. Of a closed one nobody reads any more. */
export const isPipeFull = (error: unknown): boolean => hasCode(error, 'EAGAIN')

/** How often `napForPipe` is to be called to wait so long. */
export const napsWithin = (milliseconds: number): number => milliseconds / NAP_MS

/** Gives a reader 10 ms. Holds the whole process: for its very end alone. */
export function napForPipe(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, NAP_MS)
}

/**
 * A pipe or a terminal, opened once more: whether a write may wait belongs to the open file, which a descriptor shares with
 * other processes, each of which may change it. This one is nobody else's and never waits. Undefined for files and sockets,
 * where there is no /proc, and for the pipe of another user.
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

/** Whether a write takes at once what there is room for, as of now; else it may wait until it is whole. */
function neverWaits(fileDescriptor: number): boolean {
  const flags = factOf(fileDescriptor, /^flags:\s*([0-7]+)$/m)
  return flags !== undefined && (Number.parseInt(flags, 8) & constants.O_NONBLOCK) !== 0
}

/**
 * At which byte of a file the next write begins: another one once a write is whole. Always the same for what has no
 * such places, as pipes and sockets; undefined where there is no /proc.
 */
const placeOf = (fileDescriptor: number): string | undefined => factOf(fileDescriptor, /^pos:\s*(\d+)$/m)

/**
 * What Linux says of an open file. As UTF-8, for which Node 20 has a way of its own: reading bytes here, while modules
 * are still being loaded, has left some of them empty.
 */
function factOf(fileDescriptor: number, fact: RegExp): string | undefined {
  try {
    return fact.exec(readFileSync(`/proc/self/fdinfo/${fileDescriptor}`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Whether it has places to write at, as a file has. Told by writing nothing at one, not by `fstat`: see `factOf`. */
function hasPlaces(fileDescriptor: number): boolean {
  try {
    writeSync(fileDescriptor, Buffer.alloc(0), 0, 0, 0)
    return true
  } catch (error) {
    if (hasCode(error, 'ESPIPE')) return false
    throw error
  }
}

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
