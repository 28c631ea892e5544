import { GatewayError } from '../core/errors.js'
import { type Query, schemaOf, Shown } from '../core/dto.js'
import { constant, COUNT, described, listOf, nullable, type Schema, TEXT } from '../core/json-schema.js'
import {
  type CountedUnits,
  UNIT_NAMES,
  type UnitColumn,
  UNITS,
  USAGE_OUTCOMES,
  type UsageOutcome,
  type UsageRecord,
} from '../core/usage-record.js'
import { type ParameterDocumentation, USAGE_KINDS, type UsageKind } from '../core/endpoint.js'
import { isCalendarDay } from '../core/validation-rules.js'
import type { UsageGroup, UsagePosition, UsageSum } from './usage.repository.js'

export interface Period {
  /** Unix milliseconds; `toMs` is exclusive. */
  readonly fromMs: number
  readonly toMs: number
}

export const DAY_MS = 86_400_000
const SECOND_MS = 1000

/** Groups by interface; callers cannot group by key, as they see only their own. */
const GROUPS: Readonly<Record<string, readonly UsageGroup[]>> = {
  none: [],
  day: ['day'],
  model: ['model'],
  channel: ['channel'],
}

const PAGE = { maximum: 1000, fallback: 100 } as const

/** ISO 8601 with at least a date; without an offset it is UTC. */
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/
/** Shorter numbers are years, longer ones milliseconds. */
const UNIX_SECONDS = /^(?:0|\d{9,11})$/

/** Three months, however they fall: what a caller's report has to look through must have an end. */
export const LONGEST_PERIOD_MS = 92 * DAY_MS

const TIME = { ...TEXT, pattern: `${UNIX_SECONDS.source}|${ISO_TIME.source}`, example: '2026-01-31T12:00:00Z' } as const

/** `from` and `to` of a report in the OpenAPI document. */
export function periodParameters(longestMs: number): readonly ParameterDocumentation[] {
  const time = 'ISO 8601 or Unix seconds'
  const from = `${time}; by default 24 hours before to, at most ${longestMs / DAY_MS} days`
  return [
    { in: 'query', name: 'to', description: `${time}, not included; by default now`, schema: TIME },
    { in: 'query', name: 'from', description: from, schema: TIME },
  ]
}

export const GROUP_PARAMETER: ParameterDocumentation = {
  in: 'query',
  name: 'group_by',
  description: 'What each sum is of',
  schema: { ...TEXT, enum: Object.keys(GROUPS), default: 'none' },
}

export const LIMIT_PARAMETER: ParameterDocumentation = {
  in: 'query',
  name: 'limit',
  description: 'Records on a page',
  schema: { type: 'integer', minimum: 1, maximum: PAGE.maximum, default: PAGE.fallback },
}

export const CURSOR_PARAMETER: ParameterDocumentation = {
  in: 'query',
  name: 'cursor',
  description: 'next_cursor of the page before',
  schema: TEXT,
}

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

/** The end of the previous page, as `cursorOf` wrote it. */
export function readCursor(query: Query): UsagePosition | undefined {
  const value = query['cursor']
  if (value === undefined) return undefined
  const text = typeof value === 'string' ? Buffer.from(value, 'base64url').toString() : ''
  const [, atMs, id] = /^(\d{1,15}) ([\x20-\x7e]{1,512})$/.exec(text) ?? []
  if (atMs === undefined || id === undefined) throw invalid('cursor', 'expected next_cursor of the page before')
  return { atMs: Number(atMs), id }
}

export const cursorOf = ({ atMs, id }: UsagePosition): string => Buffer.from(`${atMs} ${id}`).toString('base64url')

/** Refuses unknown parameters: a misspelt filter would show too much. */
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

const COST = 'Exact decimal in the currency of the price table'
const AMOUNT = { type: 'number', minimum: 0 } as const satisfies Schema
const COUNTS = {
  title: 'UsageUnits',
  type: 'object',
  description: 'Only units that were used',
  additionalProperties: AMOUNT,
  properties: Object.fromEntries(Object.values(UNIT_NAMES).map((name) => [name, AMOUNT])),
} as const satisfies Schema

type ShownUnits = Partial<Record<UnitColumn, number>>

/** Sums of usage records, as callers see them. */
export class UsageSumDto {
  @Shown(described('UTC, with group_by=day'), false)
  readonly day?: string

  @Shown(nullable(described('With group_by=model')), false)
  readonly model?: string | null

  @Shown(nullable(described('With group_by=channel')), false)
  readonly channel?: string | null

  @Shown(described('Records in the sum', COUNT))
  readonly records: number

  @Shown(described('Records of use that has no price: the cost lacks them', COUNT))
  readonly unpriced_records: number

  @Shown(COUNTS)
  readonly units: ShownUnits

  @Shown(described(COST))
  readonly cost: string

  constructor({ day, model, channelId, records, unpricedRecords, units, cost }: UsageSum) {
    if (day !== undefined) this.day = day
    if (model !== undefined) this.model = model
    if (channelId !== undefined) this.channel = channelId
    this.records = records
    this.unpriced_records = unpricedRecords
    this.units = shownUnits(units)
    this.cost = cost
  }
}

/** One record, as its caller sees it. */
class UsageRecordDto {
  @Shown(described('Of the record'))
  readonly id: string

  @Shown(described('ISO 8601, when it was over'))
  readonly at: string

  @Shown(nullable(described('x-request-id; null for ended tasks')))
  readonly request_id: string | null

  @Shown({ ...TEXT, enum: USAGE_KINDS, description: 'What it is a record of' })
  readonly kind: UsageKind

  @Shown(described('The path'))
  readonly route: string

  @Shown(nullable(described('null where none was named')))
  readonly model: string | null

  @Shown(nullable(described('null where none was asked')))
  readonly channel: string | null

  @Shown({ ...TEXT, enum: USAGE_OUTCOMES, description: 'How it ended' })
  readonly outcome: UsageOutcome

  @Shown(nullable(described('Code, or kind, of the error of a refused request; else null')))
  readonly reason: string | null

  @Shown(described('Of a refusal: how many of one minute, for one reason, it stands for; else 1', COUNT))
  readonly requests: number

  @Shown({ description: 'Of a translated request, an object: dialects, approximated, dropped; else null' })
  readonly translation: unknown

  @Shown({ type: ['number', 'null'], description: 'Milliseconds' })
  readonly duration_ms: number | null

  @Shown(COUNTS)
  readonly units: ShownUnits

  @Shown({ description: "The upstream's own figures, an object; or null" })
  readonly reported: unknown

  @Shown({ description: "The gateway's count, an object; units are read from it where reported is null" })
  readonly estimated: unknown

  @Shown({ ...TEXT, enum: ['priced', 'unpriced', 'free'], description: 'Whether cost holds all of it' })
  readonly pricing: string

  @Shown(nullable(described(`${COST}; null when unpriced`)))
  readonly cost: string | null

  constructor(record: UsageRecord) {
    this.id = record.id
    this.at = new Date(record.atMs).toISOString()
    this.request_id = record.requestId
    this.kind = record.kind
    this.route = record.route
    this.model = record.model
    this.channel = record.channelId
    this.outcome = record.outcome
    this.reason = record.reason ?? null
    this.requests = record.requests ?? 1
    this.translation = figures(record.translation ?? null)
    this.duration_ms = record.durationMs
    this.units = shownUnits(record.units)
    this.reported = figures(record.reported)
    this.estimated = figures(record.estimated)
    this.pricing = record.pricing
    this.cost = record.cost
  }
}

export class UsageReportDto {
  @Shown(constant('usage'))
  readonly object = 'usage'

  @Shown(described('ISO 8601'))
  readonly from: string

  @Shown(described('ISO 8601, not included'))
  readonly to: string

  constructor({ fromMs, toMs }: Period) {
    this.from = new Date(fromMs).toISOString()
    this.to = new Date(toMs).toISOString()
  }
}

export class UsageSumsDto extends UsageReportDto {
  @Shown(listOf(schemaOf(UsageSumDto, 'UsageSum', 'What one group has used'), 'In the order of their groups'))
  readonly data: readonly UsageSumDto[]

  constructor(period: Period, sums: readonly UsageSum[]) {
    super(period)
    this.data = sums.map((sum) => new UsageSumDto(sum))
  }
}

export class UsageRecordsDto {
  @Shown(constant('list'))
  readonly object = 'list'

  @Shown(listOf(schemaOf(UsageRecordDto, 'UsageRecord', 'What one request has used'), 'The newest first'))
  readonly data: readonly UsageRecordDto[]

  @Shown({ type: 'boolean', description: 'Whether there is another page' })
  readonly has_more: boolean

  @Shown(nullable(described('To be sent as cursor for the next page')))
  readonly next_cursor: string | null

  constructor(records: readonly UsageRecord[], nextCursor: string | null) {
    this.data = records.map((record) => new UsageRecordDto(record))
    this.has_more = nextCursor !== null
    this.next_cursor = nextCursor
  }
}

function shownUnits(units: CountedUnits): ShownUnits {
  const shown: ShownUnits = {}
  for (const name of UNITS) if (units[name] !== undefined) shown[UNIT_NAMES[name]] = units[name]
  return shown
}

/** JSON text written by this gateway: valid by construction. */
const figures = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
