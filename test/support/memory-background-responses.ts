import type { UsageRecord } from '../../src/core/usage-record.js'
import {
  type BackgroundClaim,
  type BackgroundResponseRow,
  BackgroundResponses,
  type LatestPolls,
  type NextPoll,
} from '../../src/responses/background-responses.js'

interface StoredRow extends BackgroundResponseRow {
  readonly lockedUntilMs: number
}

const keyOf = ({ ownerId, id }: Pick<BackgroundResponseRow, 'ownerId' | 'id'>): string => `${ownerId}\n${id}`

const dueAtMs = ({ nextPollAtMs, lockedUntilMs }: StoredRow): number => Math.max(nextPollAtMs, lockedUntilMs)

/** Responses in the background in memory, which fail as a test wants; replicas in one test share it. */
export class MemoryBackgroundResponses extends BackgroundResponses {
  readonly rows = new Map<string, StoredRow>()
  /** As a store would have them, by their ids. */
  readonly records = new Map<string, UsageRecord>()
  /** Of ended responses, by the ids of these. */
  readonly pinned = new Map<string, readonly string[]>()
  /** How often a row was written, or was to be. */
  begun = 0
  failure: Error | undefined
  /** What `end` fails with once it has been asked, and nothing is written. */
  failureOfEnd: Error | undefined
  /** The same, where there is something to be pinned. */
  failureOfPins: Error | undefined

  override check(): Promise<void> {
    return this.work(() => undefined)
  }

  override begin(row: BackgroundResponseRow): Promise<void> {
    this.begun++
    return this.work(() => {
      if (!this.rows.has(keyOf(row))) this.put({ ...row, lockedUntilMs: 0 })
    })
  }

  override find(ownerId: string, id: string): Promise<BackgroundResponseRow | undefined> {
    return this.work(() => {
      const row = this.rows.get(keyOf({ ownerId, id }))
      return row && bare(row)
    })
  }

  override claimDue(claim: BackgroundClaim): Promise<readonly BackgroundResponseRow[]> {
    const { nowMs, lockedUntilMs, limit, exceptChannels } = claim
    return this.work(() => {
      const due = [...this.rows.values()]
        .filter((row) => dueAtMs(row) <= nowMs && !exceptChannels.includes(row.channelId))
        .sort((one, other) => dueAtMs(one) - dueAtMs(other))
        .slice(0, limit)
      for (const row of due) this.put({ ...row, lockedUntilMs })
      return due.map(bare)
    })
  }

  override nextDueAtMs(): Promise<number | undefined> {
    return this.work(() => {
      const times = [...this.rows.values()].map(dueAtMs)
      return times.length === 0 ? undefined : Math.min(...times)
    })
  }

  override reschedule(claimed: BackgroundResponseRow, next: NextPoll): Promise<void> {
    return this.work(() => {
      const row = this.rows.get(keyOf(claimed))
      if (row === undefined) return
      const isPlanned = row.nextPollAtMs === claimed.nextPollAtMs
      this.put({ ...row, ...next, nextPollAtMs: isPlanned ? next.nextPollAtMs : row.nextPollAtMs, lockedUntilMs: 0 })
    })
  }

  override hasten(ownerId: string, id: string, atMs: number): Promise<void> {
    return this.work(() => {
      const row = this.rows.get(keyOf({ ownerId, id }))
      if (row !== undefined) this.put({ ...row, nextPollAtMs: Math.min(row.nextPollAtMs, atMs) })
    })
  }

  override end(
    row: BackgroundResponseRow,
    itemIds: readonly string[],
    record: UsageRecord | undefined,
  ): Promise<boolean> {
    return this.work(() => {
      if (this.failureOfEnd !== undefined) throw this.failureOfEnd
      if (this.failureOfPins !== undefined && itemIds.length > 0) throw this.failureOfPins
      if (!this.rows.delete(keyOf(row))) return false
      if (record !== undefined && !this.records.has(record.id)) this.records.set(record.id, record)
      if (itemIds.length > 0) this.pinned.set(row.id, itemIds)
      return true
    })
  }

  override bringForward({ pollAtMs, lockedUntilMs }: LatestPolls): Promise<void> {
    return this.work(() => {
      for (const row of this.rows.values()) {
        const nextPollAtMs = Math.min(row.nextPollAtMs, pollAtMs)
        this.put({ ...row, nextPollAtMs, lockedUntilMs: Math.min(row.lockedUntilMs, lockedUntilMs) })
      }
    })
  }

  private put(row: StoredRow): void {
    this.rows.set(keyOf(row), row)
  }

  private async work<Result>(step: () => Result): Promise<Result> {
    await Promise.resolve()
    if (this.failure !== undefined) throw this.failure
    return step()
  }
}

const bare = ({ lockedUntilMs: _lease, ...row }: StoredRow): BackgroundResponseRow => row
