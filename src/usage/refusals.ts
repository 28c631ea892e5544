import { isOwnBearer } from '../core/caller.js'
import type { UsageEntry } from './usage-entry.js'

const MINUTE_MS = 60_000

/** Models that refusals of one caller for one reason are told apart by; a caller may invent names by the thousand. */
const MAXIMUM_MODELS = 16

/** Callers with bearers of their own that are told apart; any number of them can be invented. */
const MAXIMUM_BEARERS = 100
const OTHER_BEARERS = 'bearer:others'

interface Group {
  entry: UsageEntry
  requests: number
}

/**
 * Refused requests of the current minute: one entry for each caller, reason, route, channel and model, with their number.
 * The rest of it is that of the first.
 */
export class RefusalEntries {
  private readonly groups = new Map<string, Group>()
  private readonly models = new Map<string, Set<string | undefined>>()
  private readonly bearers = new Set<string>()
  private minute = 0

  /** Milliseconds until the entries of this minute are complete. */
  static untilComplete(atMs: number): number {
    return MINUTE_MS - (atMs % MINUTE_MS)
  }

  /** Returns the entries of an earlier minute, which are complete. */
  add(refusal: UsageEntry, times = 1): readonly UsageEntry[] {
    const minute = Math.floor(refusal.atMs / MINUTE_MS)
    const complete = minute === this.minute ? [] : this.take()
    this.minute = minute
    const ownerId = this.ownerOf(refusal)
    const { reason = '', route, channelId = '' } = refusal
    const common = JSON.stringify([ownerId, reason, route, channelId])
    const model = this.modelOf(common, refusal.model)
    const key = `${common} ${model ?? ''}`
    const group = this.groups.get(key)
    if (group === undefined) this.groups.set(key, { entry: { ...refusal, ownerId, model }, requests: times })
    else group.requests += times
    return complete
  }

  /** All entries so far; further refusals begin new ones. */
  take(): readonly UsageEntry[] {
    const entries = [...this.groups.values()].map(({ entry, requests }) => ({ ...entry, requests }))
    this.groups.clear()
    this.models.clear()
    this.bearers.clear()
    return entries
  }

  private ownerOf({ ownerId }: UsageEntry): string {
    if (!isOwnBearer(ownerId) || this.bearers.has(ownerId)) return ownerId
    if (this.bearers.size >= MAXIMUM_BEARERS) return OTHER_BEARERS
    this.bearers.add(ownerId)
    return ownerId
  }

  private modelOf(common: string, model: string | undefined): string | undefined {
    const known = this.models.get(common) ?? new Set()
    if (known.size === 0) this.models.set(common, known)
    if (known.has(model)) return model
    if (known.size >= MAXIMUM_MODELS) return undefined
    known.add(model)
    return model
  }
}
