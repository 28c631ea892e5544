import type { UsageRecord } from '../core/usage-record.js'

/** A response that its upstream makes in the background, from its create until what it has used is recorded. */
export interface BackgroundResponseRow {
  readonly ownerId: string
  /** The upstream's. */
  readonly id: string
  readonly channelId: string
  /** As the caller named it. */
  readonly model: string
  /** Path of the request. */
  readonly route: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  readonly nextPollAtMs: number
  /** Made so far. */
  readonly polls: number
  /** Polls in a row whose upstream did not know the response. */
  readonly misses: number
}

/** The next poll of a response that has not ended, as far as is known. */
export type NextPoll = Pick<BackgroundResponseRow, 'nextPollAtMs' | 'polls' | 'misses'>

/** Times in Unix milliseconds. */
export interface BackgroundClaim {
  readonly nowMs: number
  readonly lockedUntilMs: number
  readonly limit: number
  readonly exceptChannels: readonly string[]
}

/** Latest times that can be planned now, Unix milliseconds. */
export interface LatestPolls {
  readonly pollAtMs: number
  readonly lockedUntilMs: number
}

/**
 * Responses in the background whose bill is open; also the injection token. All methods reject with `GatewayError('overloaded')` while the
 * store cannot be reached.
 */
export abstract class BackgroundResponses {
  /** Resolves where the store can be reached. */
  abstract check(): Promise<void>
  /** Writes the row, and pins the response to its channel. Without effect where the owner has one of this id. */
  abstract begin(row: BackgroundResponseRow): Promise<void>
  abstract find(ownerId: string, id: string): Promise<BackgroundResponseRow | undefined>
  /** Leases due rows; those that are leased, or are being claimed at the moment, are skipped. */
  abstract claimDue(claim: BackgroundClaim): Promise<readonly BackgroundResponseRow[]>
  /** When the next row can be claimed: it is due, and its lease, if it has one, has run out. Undefined where there is none. */
  abstract nextDueAtMs(): Promise<number | undefined>
  /** Frees the lease of a claimed row and plans its next poll, unless an earlier one was asked for meanwhile. */
  abstract reschedule(claimed: BackgroundResponseRow, next: NextPoll): Promise<void>
  /** Makes a row due at that time, if it is not due earlier. */
  abstract hasten(ownerId: string, id: string, atMs: number): Promise<void>
  /**
   * Ends a row in one transaction: deletes it, writes the usage record, if there is one, and pins the items of its output. False when it
   * had ended before: then nothing is written.
   */
  abstract end(
    row: BackgroundResponseRow,
    itemIds: readonly string[],
    record: UsageRecord | undefined,
  ): Promise<boolean>
  /** After the clock was set back: nothing is planned, or leased, for later than that. */
  abstract bringForward(latest: LatestPolls): Promise<void>
}
