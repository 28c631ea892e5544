import { randomBytes } from 'node:crypto'
import type { Units } from '../core/request-context.js'
import { type CountedUnits, countedUnits, type UsageRecord } from '../core/usage-record.js'
import { LONGEST_NAME, type UsageEntry } from './usage-entry.js'

/** Random per process and counted within it: unique over all replicas. Request ids are not, as callers may choose them. */
const PREFIX = `use_${randomBytes(10).toString('hex')}`
let count = 0

/** What was used, and what that costs. */
export type PricedUse = Pick<UsageRecord, 'units' | 'pricing' | 'cost'>

/** By the price table of its time. */
export function pricedUse(note: UsageEntry): PricedUse {
  const units = note.usage === undefined ? NOTHING : countedUnits(note.usage.units)
  const { pricing, cost } = priced(note, units)
  return { units, pricing, cost }
}

/** The record of a note. */
export function settledRecord(note: UsageEntry, { units, pricing, cost }: PricedUse): UsageRecord {
  const { usage, unitsText, estimate } = note
  return {
    id: note.id ?? `${PREFIX}${(++count).toString(16).padStart(10, '0')}`,
    atMs: note.atMs,
    requestId: note.requestId ?? null,
    keyId: note.keyId,
    ownerId: note.ownerId,
    kind: note.kind,
    route: note.route,
    model: note.model === undefined ? null : storable(note.model),
    channelId: note.channelId ?? null,
    outcome: note.outcome,
    durationMs: note.durationMs === undefined ? null : Math.round(note.durationMs),
    units,
    reported: usage?.estimated === false ? (unitsText ?? JSON.stringify(usage.units)) : null,
    estimated: usage?.estimated === true ? (unitsText ?? JSON.stringify(usage.units)) : textOf(estimate),
    pricing,
    cost,
  }
}

const NOTHING: CountedUnits = {}

function priced(note: UsageEntry, units: CountedUnits): Pick<PricedUse, 'pricing' | 'cost'> {
  const isUsed = hasCounts(units)
  // Figures that are not understood are no reason to give something away.
  const isUnknown = !isUsed && note.usage !== undefined && hasFigures(note.usage.units, units)
  const price = note.model === undefined ? undefined : note.prices.find(note.model, note.channelId ?? '', note.kind)
  const requests = note.kind === 'request' && (isUsed || note.outcome === 'ok') ? 1 : 0
  const cost = isUnknown ? undefined : price?.costOf(units, requests)
  if (!isUsed && !isUnknown && (cost === undefined || cost === '0')) return { pricing: 'free', cost: '0' }
  return cost === undefined ? { pricing: 'unpriced', cost: null } : { pricing: 'priced', cost }
}

function hasCounts(units: CountedUnits): boolean {
  for (const name in units) if ((units[name as keyof CountedUnits] ?? 0) > 0) return true
  return false
}

/** Whether anything but zeros stands in an object of which nothing was counted. */
function hasFigures(units: Units, counted: CountedUnits): boolean {
  for (const _name in counted) return false
  for (const name in units) {
    const figure = units[name]
    if (typeof figure === 'number' ? figure > 0 : figure !== undefined && hasFigures(figure, NOTHING)) return true
  }
  return false
}

const textOf = (units: Units | undefined): string | null => (units === undefined ? null : JSON.stringify(units))

/** No database takes a NUL or half a character. */
function storable(name: string): string {
  if (name.length <= LONGEST_NAME && PLAIN.test(name)) return name
  return name.slice(0, LONGEST_NAME).replaceAll(/[\0\p{Cs}]/gu, '')
}

/** As nearly all names are. */
const PLAIN = /^[\x20-\x7e]*$/
