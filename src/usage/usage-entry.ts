import type { GatewayConfig } from '../config/settings.js'
import { isOwnBearer, ownerOf } from '../core/caller.js'
import type { UsageClass, UsageKind } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext, Units, Usage } from '../core/request-context.js'
import type { EndedTask, ResponseUsage, UsageOutcome } from '../core/usage-record.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { PriceTable } from './prices.js'

/** Whether the operator wants usage stored: by saying so, or by naming a database or a key for the reports. */
export const storesUsage = ({ usage, database, auth }: Pick<GatewayConfig, 'usage' | 'database' | 'auth'>): boolean =>
  usage.store ?? (database.url !== undefined || auth.adminKey !== undefined)

/** Of a model, in characters. None of a configuration has a longer one; a caller makes one as long as it likes. */
export const LONGEST_NAME = 256

/** What is known the moment something is over. Small, and read again only when a batch is settled. */
export interface UsageEntry {
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

/** What an ended task leaves to be recorded: one video or image, or none of a task that has failed. */
export function entryFromTask(task: EndedTask, prices: PriceTable): UsageEntry {
  const { id, ownerId, taskClass, route, model, channelId, hasSucceeded, reported, durationMs } = task
  const made = hasSucceeded ? 1 : 0
  return {
    id: `task ${id}`,
    atMs: Date.now(),
    requestId: undefined,
    keyId: isOwnBearer(ownerId) ? 'caller' : ownerId,
    ownerId,
    kind: 'task',
    route,
    model,
    usageClass: taskClass,
    channelId,
    outcome: hasSucceeded ? 'ok' : 'upstream_failed',
    durationMs,
    usage: {
      units: { ...reported, ...(taskClass === 'video' ? { videos: made } : { images: made }) },
      estimated: false,
    },
    unitsText: undefined,
    estimate: undefined,
    prices,
  }
}

/** What one answer, or one transcription, within a call leaves to be recorded. */
export function entryFromResponse(
  { call, channelId, model, kind, units, estimated, estimate, outcome = 'ok' }: ResponseUsage,
  prices: PriceTable,
): UsageEntry {
  const { requestId, caller, path, log } = call
  return {
    id: undefined,
    atMs: Date.now(),
    requestId,
    keyId: caller.keyId,
    ownerId: ownerOf(caller),
    kind,
    route: path,
    model,
    usageClass: log.modelClass ?? 'realtime',
    channelId,
    outcome,
    durationMs: undefined,
    usage: { units, estimated },
    unitsText: undefined,
    estimate,
    prices,
  }
}

/** No key guard has let anybody in. */
const NOBODY = '-'

/**
 * What a call that is over leaves to be recorded; undefined where its endpoint records none, and for callers nobody knows.
 * Runs at the end of every call: nothing is formatted or parsed here.
 */
export function entryFromRequest(
  call: RequestContext,
  outcome: RequestOutcome,
  prices: PriceTable,
): UsageEntry | undefined {
  const { caller, log } = call
  const billing = call.endpoint?.billing ?? 'none'
  if (billing === 'none' || !billing.records.includes('request') || caller.keyId === NOBODY) return undefined
  return {
    id: undefined,
    atMs: Date.now(),
    requestId: call.requestId,
    keyId: caller.keyId,
    ownerId: ownerOf(caller),
    kind: 'request',
    route: call.path,
    model: billing.model ?? shortName(log.model),
    usageClass: billing.model === undefined ? (log.modelClass ?? billing.usageClass) : billing.usageClass,
    channelId: log.channelId,
    outcome: outcomeWord(log.failure, outcome),
    durationMs: outcome.totalMs,
    // The responses within it are recorded one by one.
    usage: billing.records.includes('response') ? undefined : log.usage,
    unitsText: log.unitsText,
    estimate: log.estimate,
    prices,
  }
}

/** A caller may write megabytes where the model stands; a part of a text would keep the whole of it, so this is a copy. */
function shortName(name: string | undefined): string | undefined {
  if (name === undefined || name.length <= LONGEST_NAME) return name
  return Buffer.from(name.slice(0, LONGEST_NAME)).toString()
}

function outcomeWord(failure: unknown, { left, status }: RequestOutcome): UsageOutcome {
  if (left) return 'caller_left'
  if (failure === undefined) return status < 400 ? 'ok' : 'refused'
  if (!(failure instanceof GatewayError)) return 'refused'
  if (failure.kind === 'caller_left') return 'caller_left'
  return failure.kind === 'upstream_failed' || failure.kind === 'upstream_timeout' ? 'upstream_failed' : 'refused'
}
