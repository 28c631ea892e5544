import type { CountedUnits } from '../core/counted-units.js'

/** `day` is a day in UTC. */
export const USAGE_GROUPS = ['day', 'model', 'channel', 'key'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

/** Which records are summed, and over what. Times are Unix milliseconds; `toMs` is outside. */
export interface UsageQuestion {
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

/** One sum. The groups that were asked for are set; `null` where the records name no model or no channel. */
export interface UsageSum {
  /** `YYYY-MM-DD`. */
  readonly day?: string
  readonly model?: string | null
  readonly channelId?: string | null
  readonly keyId?: string
  readonly records: number
  /** Used something that has no price: the cost lacks them. */
  readonly unpricedRecords: number
  readonly units: CountedUnits
  /** Exact decimal text, in the currency of the price table. */
  readonly cost: string
}

/** Sums of the usage records; the token under which an operator's part injects them. `UsageModule` exports it. */
export abstract class UsageReports {
  /**
   * The sums, in the order of their groups, including what this process has not written yet. Rejects with `invalid_request`
   * for more than 10,000 groups, with `not_found` where usage is not stored, with `overloaded` while the store is away,
   * while a caller has a report made already, or while all places for reports are taken.
   */
  abstract sums(question: UsageQuestion): Promise<readonly UsageSum[]>
}
