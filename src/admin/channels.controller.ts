import { Controller, Injectable, Param, UseGuards } from '@nestjs/common'
import type { ChannelConfig } from '../config/channel-schema.js'
import { ConfigStore } from '../config/config-store.js'
import { schemaOf, Shown } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import { constant, COUNT, described, listOf } from '../core/json-schema.js'
import { type ChannelReport, ChannelReports } from '../routing/router.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { adminRoute, pathParameter } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

/** A channel of the configuration, with its state in this process. */
class ChannelDto {
  @Shown(described('As in the configuration'))
  readonly id: string

  @Shown(described('The kind of upstream'))
  readonly provider: string

  @Shown({ type: 'number', description: 'Channels of the highest are asked first' })
  readonly priority: number

  @Shown({ type: 'number', description: 'Its part among channels of the same priority' })
  readonly weight: number

  @Shown({ ...described('Of its breaker; open = spared'), enum: ['closed', 'half_open', 'open'] })
  readonly state: ChannelReport['state']

  @Shown(described('By its own fault, in a row', COUNT))
  readonly consecutive_failures: number

  @Shown(described('Milliseconds until a call may try it again', COUNT))
  readonly open_for_ms: number

  @Shown(described('Calls that wait for their first byte', COUNT))
  readonly waiting: number

  @Shown({ type: ['number', 'null'], description: 'To the first byte, on average; null = not used lately' })
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

const CHANNEL = schemaOf(ChannelDto, 'Channel', 'A channel of the configuration, with its state in this process')

class ChannelListDto {
  @Shown(constant('list'))
  readonly object = 'list'

  @Shown(listOf(CHANNEL, 'All of them'))
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

export const LIST_CHANNELS = adminRoute('GET', '/channels', {
  operationId: 'listChannels',
  summary: 'The channels and their breakers, as this process finds them',
  description: 'Each process of a gateway has breakers of its own.',
  answer: {
    description: 'All channels',
    content: { 'application/json': schemaOf(ChannelListDto, 'ChannelList', 'The channels of the configuration') },
  },
})

export const RESET_CHANNEL = adminRoute('POST', '/channels/:id/reset', {
  operationId: 'resetChannel',
  summary: 'Close the breaker of one channel in this process',
  description: 'The next call may try the channel again.',
  parameters: [pathParameter('id', 'The id of the channel')],
  answer: { description: 'The channel', content: { 'application/json': CHANNEL } },
})

@Controller()
@UseGuards(AdminGuard)
export class ChannelsController {
  constructor(private readonly channels: ChannelsService) {}

  @Endpoint(LIST_CHANNELS, [])
  async list(@CurrentAdmin() admin: Admin): Promise<ChannelListDto> {
    return new ChannelListDto(await this.channels.list(admin))
  }

  @Endpoint(RESET_CHANNEL, [])
  reset(@Param('id') id: string, @CurrentAdmin() admin: Admin): Promise<ChannelDto> {
    return this.channels.reset(admin, id)
  }
}
