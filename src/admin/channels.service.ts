import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import { ChannelReports } from '../routing/channel-reports.js'
import { type Admin, AdminTrail } from './audit-log.js'
import { ChannelDto } from './channels.dto.js'

/** The channels, as this process finds them. */
@Injectable()
export class ChannelsService {
  constructor(
    private readonly config: ConfigStore,
    private readonly reports: ChannelReports,
    private readonly trail: AdminTrail,
  ) {}

  list(admin: Admin): Promise<readonly ChannelDto[]> {
    return this.trail.look(admin, { action: 'channels.list' }, () => this.all())
  }

  /** Closes a breaker by hand. Rejects with `not_found`. */
  reset(admin: Admin, id: string): Promise<ChannelDto> {
    if (this.find(id) === undefined) throw new GatewayError('not_found', 'There is no such channel.')
    return this.trail.change(admin, { action: 'channels.reset', target: id }, () => {
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
