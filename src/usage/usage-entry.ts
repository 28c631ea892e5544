import { randomBytes } from 'node:crypto'
import type { GatewayConfig } from '../config/settings.js'
import { isOwnBearer, ownerOf, UNKNOWN_KEY_ID } from '../core/caller.js'
import type { UsageClass, UsageKind } from '../core/endpoint.js'
import { GatewayError, UPSTREAM_FAILURES } from '../core/errors.js'
import { NO_KEY, type RequestContext, type TranslationRecord, type Units, type Usage } from '../core/request-context.js'
import {
  type CountedUnits,
  countedUnits,
  type EndedTask,
  type ResponseUsage,
  type UsageOutcome,
  type UsageRecord,
} from '../core/usage-record.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { Price, PriceTable } from './prices.js'

/** Whether the operator wants usage stored: by saying so, or by naming a database or a key for the reports. */
export const storesUsage = ({ usage, database, auth }: Pick<GatewayConfig, 'usage' | 'database' | 'auth'>): boolean =>
  usage.store ?? (database.url !== undefined || auth.adminKey !== undefined)

/** Of a model, in characters. None of a configuration has a longer one; a caller makes one as long as it likes. */
const LONGEST_NAME = 256

/** What is known the moment something is over. Small, and read again only when a batch is settled. */
export interface UsageEntry {
  /** Set where the same may be reported twice. */
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
  /** Has its price where `model` has none: configurations price transcriptions by the session's model, too. */
  readonly sessionModel: string | undefined
  readonly usageClass: UsageClass
  readonly channelId: string | undefined
  readonly outcome: UsageOutcome
  /** Of a request that was refused and has used nothing: such entries of one minute become one (`refusals.ts`). */
  readonly reason?: string | undefined
  /** Of several refusals, their number. */
  readonly requests?: number
  readonly translation?: TranslationRecord | undefined
  readonly durationMs: number | undefined
  readonly usage: Usage | undefined
  /** Its units as JSON, where that has been needed already. */
  readonly unitsText: string | undefined
  /** What the gateway counted itself, beside what the upstream reported. */
  readonly estimate: Units | undefined
  /** In force then: a later table is for what is used later. */
  readonly prices: PriceTable
}

/** What an ended task leaves to be recorded. */
export function entryFromTask(task: EndedTask, prices: PriceTable): UsageEntry {
  const { id, ownerId, usageClass, route, model, channelId, outcome, usage, durationMs } = task
  return {
    id: `task ${id}`,
    atMs: Date.now(),
    requestId: undefined,
    keyId: isOwnBearer(ownerId) ? UNKNOWN_KEY_ID : ownerId,
    ownerId,
    kind: 'task',
    route,
    model,
    sessionModel: undefined,
    usageClass,
    channelId,
    outcome,
    durationMs,
    usage,
    unitsText: undefined,
    estimate: undefined,
    prices,
  }
}

/** What one answer, or one transcription, within a call leaves to be recorded. */
export function entryFromResponse(
  { call, channelId, model, sessionModel, kind, units, estimated, estimate, outcome = 'ok' }: ResponseUsage,
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
    sessionModel,
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

/**
 * What a call that is over leaves to be recorded; undefined where its endpoint records none, for unknown callers, and for
 * keys that were refused, of which any number can be invented.
 * Runs at the end of every call: nothing is formatted or parsed here.
 */
export function entryFromRequest(
  call: RequestContext,
  outcome: RequestOutcome,
  prices: PriceTable,
): UsageEntry | undefined {
  const { caller, log } = call
  const billing = call.endpoint?.billing ?? 'none'
  if (billing === 'none' || !billing.records.includes('request') || caller.keyId === NO_KEY) return undefined
  const { failure } = log
  if (failure instanceof GatewayError && failure.kind === 'unauthorized') return undefined
  const word = outcomeWord(failure, outcome)
  return {
    id: undefined,
    atMs: Date.now(),
    requestId: call.requestId,
    keyId: caller.keyId,
    ownerId: ownerOf(caller),
    kind: 'request',
    route: call.path,
    model: billing.model ?? shortName(log.model),
    sessionModel: undefined,
    usageClass: billing.model === undefined ? (log.modelClass ?? billing.usageClass) : billing.usageClass,
    channelId: log.channelId,
    outcome: word,
    reason: word === 'refused' && log.usage === undefined ? reasonOf(failure) : undefined,
    translation: log.translation,
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

const REASON = /^[a-z_]{1,64}$/

/** The code of an error; upstreams may write anything there. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof GatewayError)) return 'internal'
  const { code } = failure.details
  return code !== undefined && REASON.test(code) ? code : failure.kind
}

function outcomeWord(failure: unknown, { left, status }: RequestOutcome): UsageOutcome {
  if (left) return 'caller_left'
  if (failure === undefined) return status < 400 ? 'ok' : 'refused'
  if (!(failure instanceof GatewayError)) return 'refused'
  if (failure.kind === 'caller_left') return 'caller_left'
  return UPSTREAM_FAILURES.has(failure.kind) ? 'upstream_failed' : 'refused'
}

/** Random per process and counted within it: unique over all replicas. Request ids are not, as callers may choose them. */
const PREFIX = `use_${randomBytes(10).toString('hex')}`
let count = 0

/** Counted units and their cost. */
export type PricedUse = Pick<UsageRecord, 'units' | 'pricing' | 'cost'>

/** Prices an entry by the price table of its time. */
export function pricedUse(entry: UsageEntry): PricedUse {
  const units = entry.usage === undefined ? NOTHING : countedUnits(entry.usage.units)
  const { pricing, cost } = priced(entry, units)
  return { units, pricing, cost }
}

/** The record of a priced entry. */
export function settledRecord(entry: UsageEntry, { units, pricing, cost }: PricedUse): UsageRecord {
  const { usage, unitsText, estimate } = entry
  return {
    id: entry.id ?? `${PREFIX}${(++count).toString(16).padStart(10, '0')}`,
    atMs: entry.atMs,
    requestId: entry.requestId ?? null,
    keyId: entry.keyId,
    ownerId: entry.ownerId,
    kind: entry.kind,
    route: entry.route,
    model: entry.model === undefined ? null : storable(entry.model),
    channelId: entry.channelId ?? null,
    outcome: entry.outcome,
    ...(entry.reason === undefined ? {} : { reason: entry.reason }),
    ...(entry.requests === undefined || entry.requests === 1 ? {} : { requests: entry.requests }),
    ...(entry.translation === undefined ? {} : { translation: translationText(entry.translation) }),
    durationMs: entry.durationMs === undefined ? null : Math.round(entry.durationMs),
    units,
    reported: usage?.estimated === false ? (unitsText ?? JSON.stringify(usage.units)) : null,
    estimated: usage?.estimated === true ? (unitsText ?? JSON.stringify(usage.units)) : textOf(estimate),
    pricing,
    cost,
  }
}

const NOTHING: CountedUnits = {}

const priceOf = ({ prices, channelId, kind }: UsageEntry, model: string | undefined): Price | undefined =>
  model === undefined ? undefined : prices.find(model, channelId ?? '', kind)

function priced(entry: UsageEntry, units: CountedUnits): Pick<PricedUse, 'pricing' | 'cost'> {
  const isUsed = hasCounts(units)
  // Neither is free: usage in a form that is not understood, and a task of which it is not known what it has used.
  const isUnknown =
    !isUsed && (entry.usage === undefined ? entry.kind === 'task' : hasFigures(entry.usage.units, units))
  const price = priceOf(entry, entry.model) ?? priceOf(entry, entry.sessionModel)
  const requests = entry.kind === 'request' && (isUsed || entry.outcome === 'ok') ? 1 : 0
  const cost = isUnknown ? undefined : price?.costOf(units, requests)
  if (!isUsed && !isUnknown && (cost === undefined || cost === '0')) return { pricing: 'free', cost: '0' }
  return cost === undefined ? { pricing: 'unpriced', cost: null } : { pricing: 'priced', cost }
}

function hasCounts(units: CountedUnits): boolean {
  for (const name in units) if ((units[name as keyof CountedUnits] ?? 0) > 0) return true
  return false
}

/** Whether the upstream's usage has a number other than zero although none was counted. */
function hasFigures(units: Units, counted: CountedUnits): boolean {
  for (const _name in counted) return false
  for (const name in units) {
    const figure = units[name]
    if (typeof figure === 'number' ? figure > 0 : figure !== undefined && hasFigures(figure, NOTHING)) return true
  }
  return false
}

const translationText = ({ dialects, approximated, dropped }: TranslationRecord): string =>
  JSON.stringify({ dialects, approximated: approximated ?? null, dropped: dropped ?? null })

const textOf = (units: Units | undefined): string | null => (units === undefined ? null : JSON.stringify(units))

/** PostgreSQL text holds neither a NUL nor half a surrogate pair. */
function storable(name: string): string {
  if (name.length <= LONGEST_NAME && PLAIN.test(name)) return name
  return name.slice(0, LONGEST_NAME).replaceAll(/[\0\p{Cs}]/gu, '')
}

/** Nearly all names match. */
const PLAIN = /^[\x20-\x7e]*$/
