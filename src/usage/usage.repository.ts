import type { CountedUnits, UsageRecord } from '../core/usage-record.js'

/** `day` is a day in UTC. */
export const USAGE_GROUPS = ['day', 'model', 'channel', 'key'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

/** Which records are summed, and how. Times are Unix milliseconds; `toMs` is exclusive. */
export interface UsageQuery {
  readonly fromMs: number
  readonly toMs: number
  /** Empty: one sum over everything. */
  readonly groupBy: readonly UsageGroup[]
  /** All callers with an upstream key of their own have the key id `caller`. */
  readonly keyId?: string
  /** One caller: `ownerOf(caller)`. */
  readonly ownerId?: string
  readonly model?: string
  readonly channelId?: string
}

/** One sum. The requested groups are set; `null` for records without a model or channel. */
export interface UsageSum {
  /** `YYYY-MM-DD`. */
  readonly day?: string
  readonly model?: string | null
  readonly channelId?: string | null
  readonly keyId?: string
  readonly records: number
  /** Records with units that have no price, which is missing in the cost. */
  readonly unpricedRecords: number
  readonly units: CountedUnits
  /** Exact decimal text, in the currency of the price table. */
  readonly cost: string
}

/** Sums of the usage records; the token under which controllers' services inject them. `UsageModule` exports it. */
export abstract class UsageReports {
  /**
   * The sums, in the order of their groups, including what this process has not written yet. Rejects with
   * `invalid_request` for more than 10,000 groups, with `not_found` where usage is not stored, with `overloaded` while
   * the store is away, while another report of the same caller is under way, or while all slots for reports are taken.
   */
  abstract sums(query: UsageQuery): Promise<readonly UsageSum[]>

  /** One caller's records, newest first. Rejects as `sums` does. */
  abstract list(page: UsagePage): Promise<readonly UsageRecord[]>
}

/** The position of a record in a list: newest first. */
export interface UsagePosition {
  readonly atMs: number
  readonly id: string
}

export interface UsagePage {
  readonly ownerId: string
  /** Unix milliseconds; `toMs` is exclusive. */
  readonly fromMs: number
  readonly toMs: number
  /** The end of the previous page; absent for the first. */
  readonly after?: UsagePosition
  readonly limit: number
}

/**
 * Usage records as the store keeps them; also the injection token. All methods reject with `GatewayError('overloaded')`
 * while the database cannot be reached.
 */
export abstract class UsageRepository {
  /** Opens the store if it is not open. */
  abstract open(): Promise<void>
  /** Inserts all records in one statement; rows whose ids exist already stay as they are. */
  abstract insert(records: readonly UsageRecord[]): Promise<void>
  /**
   * At most `limit` sums, in the order of their groups. Records that were refused and cost nothing count without a
   * model: callers may invent names by the thousand.
   */
  abstract sums(query: UsageQuery, limit: number): Promise<readonly UsageSum[]>
  /** Newest first. */
  abstract list(page: UsagePage): Promise<readonly UsageRecord[]>
  /**
   * Deletes at most `limit` records older than that and as many sums of hours that ended by then, and none that another
   * process is deleting. Returns the larger of both counts.
   */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}
