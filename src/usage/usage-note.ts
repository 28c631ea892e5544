import type { Units, Usage } from '../core/request-context.js'
import type { UsageClass, UsageKind, UsageOutcome } from '../core/usage-record.js'
import type { PriceTable } from './price-table.js'

/** Of a model, in characters. None of a configuration has a longer one; a caller makes one as long as it likes. */
export const LONGEST_NAME = 256

/** What is known the moment something is over. Small, and read again only when a batch is settled. */
export interface UsageNote {
  /** Set where the same may be told twice. */
  readonly id: string | undefined
  /** Unix milliseconds. */
  readonly atMs: number
  /** undefined for ended tasks. */
  readonly requestId: string | undefined
  readonly keyId: string
  readonly ownerId: string
  readonly kind: UsageKind
  readonly route: string
  readonly model: string | undefined
  readonly usageClass: UsageClass
  readonly channelId: string | undefined
  readonly outcome: UsageOutcome
  readonly durationMs: number | undefined
  readonly usage: Usage | undefined
  /** Its units as JSON, where that has been needed already. */
  readonly unitsText: string | undefined
  /** What the gateway counted itself, beside what the upstream reported. */
  readonly estimate: Units | undefined
  /** In force then: a later table is for what is used later. */
  readonly prices: PriceTable
}
