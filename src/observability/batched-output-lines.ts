/** A reader of the log that stands still must not fill the memory: lines beyond this are counted instead of kept. */
const MAXIMUM_BYTES = 8 * 1024 * 1024

const PAGE_BYTES = 65_536
/** UTF-8 needs at most this for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3

/**
 * Lines that wait to be written, as bytes: as strings they would be copied by every collection of the young heap they
 * survive.
 */
export class WaitingLines {
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
