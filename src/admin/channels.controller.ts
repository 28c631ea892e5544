import { Controller, Get, HttpCode, Injectable, Param, Post, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiParam, ApiProperty } from '@nestjs/swagger'
import type { ChannelConfig } from '../config/channel-schema.js'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/errors.js'
import { type ChannelReport, ChannelReports } from '../routing/router.js'
import { ApiAdmin, ApiAdminErrors } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

/** A channel of the configuration, with its state in this process. */
class ChannelDto {
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

class ChannelListDto {
  @ApiProperty({ enum: ['list'] })
  readonly object = 'list'

  @ApiProperty({ type: [ChannelDto] })
  readonly data: readonly ChannelDto[]

  constructor(data: readonly ChannelDto[]) {
    this.data = data
  }
}

/** Channels and their state in this process. */
@Injectable()
export class ChannelsService {
  constructor(
    private readonly config: ConfigStore,
    private readonly reports: ChannelReports,
    private readonly auditLog: AuditLog,
  ) {}

  list(admin: Admin): Promise<readonly ChannelDto[]> {
    return this.auditLog.read(admin, { action: 'channels.list' }, () => this.all())
  }

  /** Closes a channel's breaker. Rejects with `not_found`. */
  reset(admin: Admin, id: string): Promise<ChannelDto> {
    if (this.find(id) === undefined) throw new GatewayError('not_found', 'There is no such channel.')
    return this.auditLog.change(admin, { action: 'channels.reset', target: id }, () => {
      this.reports.reset(id)
      const channel = this.find(id)
      if (channel === undefined) throw new GatewayError('not_found', 'There is no such channel any more.')
      return channel
    })
  }

  private find(id: string): ChannelDto | undefined {
    return this.all().find((channel) => channel.id === id)
  }

  private all(): readonly ChannelDto[] {
    const reports = new Map(this.reports.snapshot().map((report) => [report.channelId, report]))
    return this.config.current.channels.map((channel) => new ChannelDto(channel, reports.get(channel.id)))
  }
}

@ApiAdmin()
@Controller('admin/v1/channels')
@UseGuards(AdminGuard)
export class ChannelsController {
  constructor(private readonly channels: ChannelsService) {}

  @Get()
  @ApiOperation({ summary: 'The channels and their breakers, as this process finds them' })
  @ApiOkResponse({ type: ChannelListDto })
  @ApiAdminErrors([401, 404, 429])
  async list(@CurrentAdmin() admin: Admin): Promise<ChannelListDto> {
    return new ChannelListDto(await this.channels.list(admin))
  }

  @Post(':id/reset')
  @HttpCode(200)
  @ApiOperation({ summary: 'Close the breaker of one channel in this process' })
  @ApiParam({ name: 'id', type: String })
  @ApiOkResponse({ type: ChannelDto })
  @ApiAdminErrors([401, 404, 429, 503])
  reset(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<ChannelDto> {
    return this.channels.reset(admin, id)
  }
}
