import { isCalendarDay } from '../core/calendar-day.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Query } from '../core/query.js'
import type { UsageGroup } from './usage-usage-reports.js'
import type { UsagePosition } from './usage.repository.js'

export interface Period {
  /** Unix milliseconds; `toMs` is outside. */
  readonly fromMs: number
  readonly toMs: number
}

export const DAY_MS = 86_400_000
const SECOND_MS = 1000

/** What callers may group by; who they are themselves is no question. */
const GROUPS: Readonly<Record<string, readonly UsageGroup[]>> = {
  none: [],
  day: ['day'],
  model: ['model'],
  channel: ['channel'],
}

const PAGE = { maximum: 1000, fallback: 100 } as const

/** ISO 8601 with a date at least; without an offset it is UTC, as a date alone is. */
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/
/** Shorter ones are years that were meant as such, longer ones milliseconds. */
const UNIX_SECONDS = /^(?:0|\d{9,11})$/

/** `from` and `to`; by default the last 24 hours, at most `longestMs`. Throws `invalid_request` naming the parameter. */
export function readPeriod(query: Query, nowMs: number, longestMs: number): Period {
  const toMs = readTime(query, 'to') ?? nowMs
  const fromMs = readTime(query, 'from') ?? toMs - DAY_MS
  if (fromMs >= toMs) throw invalid('from', 'must be before to')
  if (toMs - fromMs > longestMs)
    throw invalid('from', `must be at most ${longestMs / DAY_MS} days before to; ask for several periods`)
  return { fromMs, toMs }
}

export function readGroups(query: Query): readonly UsageGroup[] {
  const word = query['group_by'] ?? 'none'
  const groups = typeof word === 'string' && Object.hasOwn(GROUPS, word) ? GROUPS[word] : undefined
  if (groups === undefined) throw invalid('group_by', `expected one of ${Object.keys(GROUPS).join(', ')}`)
  return groups
}

export function readLimit(query: Query): number {
  const value = query['limit']
  if (value === undefined) return PAGE.fallback
  const number = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : 0
  if (number >= 1 && number <= PAGE.maximum) return number
  throw invalid('limit', `expected a whole number from 1 to ${PAGE.maximum}`)
}

/** Where the page before ended, as `cursorOf` wrote it. */
export function readCursor(query: Query): UsagePosition | undefined {
  const value = query['cursor']
  if (value === undefined) return undefined
  const text = typeof value === 'string' ? Buffer.from(value, 'base64url').toString() : ''
  const [, atMs, id] = /^(\d{1,15}) ([\x20-\x7e]{1,512})$/.exec(text) ?? []
  if (atMs === undefined || id === undefined) throw invalid('cursor', 'expected next_cursor of the page before')
  return { atMs: Number(atMs), id }
}

export const cursorOf = ({ atMs, id }: UsagePosition): string => Buffer.from(`${atMs} ${id}`).toString('base64url')

/** Refuses what nobody reads: a misspelt filter would show too much. */
export function assertKnown(query: Query, known: readonly string[]): void {
  const unknown = Object.keys(query).find((name) => !known.includes(name))
  if (unknown !== undefined) throw invalid(unknown.slice(0, 64), `is not known here; known are ${known.join(', ')}`)
}

function readTime(query: Query, name: string): number | undefined {
  const value = query[name]
  if (value === undefined) return undefined
  const timeMs = typeof value === 'string' ? timeOf(value) : Number.NaN
  if (Number.isSafeInteger(timeMs) && timeMs >= 0) return timeMs
  throw invalid(name, 'expected a time as ISO 8601 (2026-01-31 or 2026-01-31T12:00:00Z) or Unix seconds')
}

function timeOf(text: string): number {
  if (UNIX_SECONDS.test(text)) return Number(text) * SECOND_MS
  const [, day, offset] = ISO_TIME.exec(text) ?? []
  if (day === undefined || !isCalendarDay(day)) return Number.NaN
  return Date.parse(text.includes('T') && offset === undefined ? `${text}Z` : text)
}

const invalid = (param: string, rule: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid '${param}': ${rule}.`, { param, code: 'invalid_value' })
