import type { Reschedule } from './task.repository.js'

/** How long a poll without news waits for company before it is written. */
const DELAY_MS = 100
const MAXIMUM_ROWS = 500

/** Gathers polls without news into few writes. What cannot be written is polled again when its lease runs out. */
export class RescheduleBatch {
  private rows: Reschedule[] = []
  private timer: NodeJS.Timeout | undefined
  private writing: Promise<void> = Promise.resolve()

  /** `write` must not reject. */
  constructor(private readonly write: (rows: readonly Reschedule[]) => Promise<void>) {}

  add(row: Reschedule): void {
    this.rows.push(row)
    if (this.rows.length >= MAXIMUM_ROWS) void this.flush()
    else this.timer ??= setTimeout(() => void this.flush(), DELAY_MS)
  }

  /** Resolves once everything added so far is written. */
  flush(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const rows = this.rows.splice(0)
    if (rows.length > 0) this.writing = this.writing.then(() => this.write(rows))
    return this.writing
  }
}
