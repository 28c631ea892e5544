import type { ModelClass } from '../config/channel-config.js'
import type { CountedUnits } from './counted-units.js'

export const USAGE_KINDS = ['request', 'response', 'input_transcription', 'task'] as const
export type UsageKind = (typeof USAGE_KINDS)[number]

export const USAGE_OUTCOMES = ['ok', 'caller_left', 'upstream_failed', 'refused'] as const
export type UsageOutcome = (typeof USAGE_OUTCOMES)[number]

/** `free`: nothing was used. `unpriced`: something was, for which the table has no price. */
export const PRICINGS = ['priced', 'unpriced', 'free'] as const
export type Pricing = (typeof PRICINGS)[number]

/** Few and known, as metrics are counted by them. */
export type UsageClass = ModelClass | 'document'

/** One record as it is stored. */
export interface UsageRecord {
  readonly id: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** null for ended tasks. A caller may choose it, so it need not be unique. */
  readonly requestId: string | null
  readonly keyId: string
  /** `ownerOf(caller)`. */
  readonly ownerId: string
  readonly kind: UsageKind
  readonly route: string
  readonly model: string | null
  readonly channelId: string | null
  readonly outcome: UsageOutcome
  readonly durationMs: number | null
  readonly units: CountedUnits
  /** JSON: the upstream's own figures, under its own names. */
  readonly reported: string | null
  /** JSON: what the gateway counted, as far as it did. `units` are read from it where the upstream reported nothing. */
  readonly estimated: string | null
  readonly pricing: Pricing
  /** Exact decimal text; null when unpriced. */
  readonly cost: string | null
}
