import { randomBytes } from 'node:crypto'
import type { Units } from '../core/request-context.js'
import { type CountedUnits, countedUnits, type UsageRecord } from '../core/usage-record.js'
import { LONGEST_NAME, type UsageEntry } from './usage-entry.js'

/**
 * Random per process and counted within it: unique over all replicas. Request ids are not, as callers may choose them.
 */
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
    durationMs: entry.durationMs === undefined ? null : Math.round(entry.durationMs),
    units,
    reported: usage?.estimated === false ? (unitsText ?? JSON.stringify(usage.units)) : null,
    estimated: usage?.estimated === true ? (unitsText ?? JSON.stringify(usage.units)) : textOf(estimate),
    pricing,
    cost,
  }
}

const NOTHING: CountedUnits = {}

function priced(entry: UsageEntry, units: CountedUnits): Pick<PricedUse, 'pricing' | 'cost'> {
  const isUsed = hasCounts(units)
  // Usage in a form that is not understood must not be free.
  const isNotUnderstood = !isUsed && entry.usage !== undefined && hasFigures(entry.usage.units, units)
  const price =
    entry.model === undefined ? undefined : entry.prices.find(entry.model, entry.channelId ?? '', entry.kind)
  const requests = entry.kind === 'request' && (isUsed || entry.outcome === 'ok') ? 1 : 0
  const cost = isNotUnderstood ? undefined : price?.costOf(units, requests)
  if (!isUsed && !isNotUnderstood && (cost === undefined || cost === '0')) return { pricing: 'free', cost: '0' }
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

const textOf = (units: Units | undefined): string | null => (units === undefined ? null : JSON.stringify(units))

/** PostgreSQL text holds neither a NUL nor half a surrogate pair. */
function storable(name: string): string {
  if (name.length <= LONGEST_NAME && PLAIN.test(name)) return name
  return name.slice(0, LONGEST_NAME).replaceAll(/[\0\p{Cs}]/gu, '')
}

/** Nearly all names match. */
const PLAIN = /^[\x20-\x7e]*$/
