import { ApiProperty } from '@nestjs/swagger'
import type { ChannelConfig } from '../config/channel-config.js'
import type { ChannelReport } from '../routing/channel-reports.js'

/** A channel of the configuration, and how this process finds it. */
export class ChannelDto {
  @ApiProperty()
  readonly id: string

  @ApiProperty()
  readonly provider: string

  @ApiProperty()
  readonly priority: number

  @ApiProperty()
  readonly weight: number

  @ApiProperty({ enum: ['closed', 'half_open', 'open'], description: 'Of its breaker; open = spared' })
  readonly state: ChannelReport['state']

  @ApiProperty({ description: 'By its own fault, in a row' })
  readonly consecutive_failures: number

  @ApiProperty({ description: 'Milliseconds until a call may try it again' })
  readonly open_for_ms: number

  @ApiProperty({ description: 'Calls that wait for their first byte' })
  readonly waiting: number

  @ApiProperty({ type: Number, nullable: true, description: 'To the first byte, on average; null = not used lately' })
  readonly latency_ms: number | null

  constructor({ id, provider, priority, weight }: ChannelConfig, report: ChannelReport | undefined) {
    this.id = id
    this.provider = provider
    this.priority = priority
    this.weight = weight
    this.state = report?.state ?? 'closed'
    this.consecutive_failures = report?.consecutiveFailures ?? 0
    this.open_for_ms = Math.round(report?.openForMs ?? 0)
    this.waiting = report?.waiting ?? 0
    this.latency_ms = report?.latencyMs === undefined ? null : Math.round(report.latencyMs * 10) / 10
  }
}

export class ChannelListDto {
  @ApiProperty({ enum: ['list'] })
  readonly object = 'list'

  @ApiProperty({ type: [ChannelDto] })
  readonly data: readonly ChannelDto[]

  constructor(data: readonly ChannelDto[]) {
    this.data = data
  }
}
