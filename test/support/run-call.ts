import type { UsageRecord } from '../../src/core/usage-record.js'

/** A call of the mixed run, and the records it must leave, as `accountOf` writes them. */
export interface RunCall {
  readonly leaves: readonly string[]
  readonly run: () => Promise<unknown>
}

/** Whose figures a record holds. */
type Figures = 'reported' | 'estimated' | 'both' | 'none'

function figuresOf({ reported, estimated }: UsageRecord): Figures {
  if (reported !== null) return estimated === null ? 'reported' : 'both'
  return estimated === null ? 'none' : 'estimated'
}

/** What a record says beside its units: `request /v1/messages ok reported`. */
export const accountOf = (record: UsageRecord): string =>
  `${record.kind} ${record.route} ${record.outcome} ${figuresOf(record)}`
