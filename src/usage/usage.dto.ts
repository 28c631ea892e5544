import { ApiProperty } from '@nestjs/swagger'
import type { CountedUnits } from '../core/counted-units.js'
import { UNIT_NAMES, type UnitColumn, UNITS } from '../core/unit-names.js'
import {
  USAGE_KINDS,
  USAGE_OUTCOMES,
  type UsageKind,
  type UsageOutcome,
  type UsageRecord,
} from '../core/usage-record.js'
import type { Period } from './usage-query.js'
import type { UsageSum } from './usage-usage-reports.js'

const COST = 'Exact decimal in the currency of the price table'
const FIGURES = { type: 'object', additionalProperties: true, nullable: true } as const
const COUNTS = {
  type: 'object',
  additionalProperties: { type: 'number' },
  description: `By unit: ${Object.values(UNIT_NAMES).join(', ')}`,
} as const

type ShownUnits = Partial<Record<UnitColumn, number>>

/** What some records add up to, as callers see it. */
export class UsageSumDto {
  @ApiProperty({ required: false, description: 'UTC, with group_by=day' })
  readonly day?: string

  @ApiProperty({ type: String, required: false, nullable: true, description: 'With group_by=model' })
  readonly model?: string | null

  @ApiProperty({ type: String, required: false, nullable: true, description: 'With group_by=channel' })
  readonly channel?: string | null

  @ApiProperty()
  readonly records: number

  @ApiProperty({ description: 'Records of use that has no price: the cost lacks them' })
  readonly unpriced_records: number

  @ApiProperty(COUNTS)
  readonly units: ShownUnits

  @ApiProperty({ description: COST })
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
export class UsageRecordDto {
  @ApiProperty()
  readonly id: string

  @ApiProperty({ description: 'ISO 8601, when it was over' })
  readonly at: string

  @ApiProperty({ type: String, nullable: true, description: 'x-request-id; null for ended tasks' })
  readonly request_id: string | null

  @ApiProperty({ enum: USAGE_KINDS })
  readonly kind: UsageKind

  @ApiProperty()
  readonly route: string

  @ApiProperty({ type: String, nullable: true })
  readonly model: string | null

  @ApiProperty({ type: String, nullable: true })
  readonly channel: string | null

  @ApiProperty({ enum: USAGE_OUTCOMES })
  readonly outcome: UsageOutcome

  @ApiProperty({ type: Number, nullable: true })
  readonly duration_ms: number | null

  @ApiProperty(COUNTS)
  readonly units: ShownUnits

  @ApiProperty({ ...FIGURES, description: "The upstream's own figures" })
  readonly reported: unknown

  @ApiProperty({ ...FIGURES, description: "The gateway's count; units are read from it where reported is null" })
  readonly estimated: unknown

  @ApiProperty({ enum: ['priced', 'unpriced', 'free'] })
  readonly pricing: string

  @ApiProperty({ type: String, nullable: true, description: `${COST}; null when unpriced` })
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
    this.duration_ms = record.durationMs
    this.units = shownUnits(record.units)
    this.reported = figures(record.reported)
    this.estimated = figures(record.estimated)
    this.pricing = record.pricing
    this.cost = record.cost
  }
}

/** What every report of sums begins with, whoever asks. */
export class UsageReportDto {
  @ApiProperty({ enum: ['usage'] })
  readonly object = 'usage'

  @ApiProperty({ description: 'ISO 8601' })
  readonly from: string

  @ApiProperty({ description: 'ISO 8601, not included' })
  readonly to: string

  constructor({ fromMs, toMs }: Period) {
    this.from = new Date(fromMs).toISOString()
    this.to = new Date(toMs).toISOString()
  }
}

export class UsageSumsDto extends UsageReportDto {
  @ApiProperty({ type: [UsageSumDto] })
  readonly data: readonly UsageSumDto[]

  constructor(period: Period, sums: readonly UsageSum[]) {
    super(period)
    this.data = sums.map((sum) => new UsageSumDto(sum))
  }
}

export class UsageRecordsDto {
  @ApiProperty({ enum: ['list'] })
  readonly object = 'list'

  @ApiProperty({ type: [UsageRecordDto] })
  readonly data: readonly UsageRecordDto[]

  @ApiProperty()
  readonly has_more: boolean

  @ApiProperty({ type: String, nullable: true, description: 'To be sent as cursor for the next page' })
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

/** Written by this gateway: valid by construction. */
const figures = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
