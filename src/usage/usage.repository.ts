import type { UsageRecord } from '../core/usage-record.js'
import type { UsageQuestion, UsageSum } from './usage-usage-reports.js'

/** The place of a record in the order of a list: newest first. */
export interface UsagePosition {
  readonly atMs: number
  readonly id: string
}

export interface UsagePage {
  readonly ownerId: string
  /** Unix milliseconds; `toMs` is outside. */
  readonly fromMs: number
  readonly toMs: number
  /** Where the page before ended; absent for the first. */
  readonly after?: UsagePosition
  readonly limit: number
}

/**
 * Usage records as the store keeps them; also the injection token. All methods reject with `GatewayError('overloaded')`
 * while the database cannot be reached.
 */
export abstract class UsageRepository {
  /** Opens the store if nobody has. */
  abstract open(): Promise<void>
  /** All of them in one statement; those whose ids are there already are left as they are. */
  abstract insert(records: readonly UsageRecord[]): Promise<void>
  /**
   * At most `limit` sums, in the order of their groups. Records that were refused and cost nothing count under no model:
   * callers may invent names by the thousand.
   */
  abstract sums(question: UsageQuestion, limit: number): Promise<readonly UsageSum[]>
  /** Newest first. */
  abstract list(page: UsagePage): Promise<readonly UsageRecord[]>
  /**
   * Deletes at most `limit` records older than that and as many sums of hours that ended by then, and none that somebody
   * else is deleting. Returns how many there were of what was more.
   */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}
