import { Controller, Get, HttpCode, Param, Post, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiParam } from '@nestjs/swagger'
import { ApiAdmin, ApiAdminErrors } from './admin-operations.decorator.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { ChannelDto, ChannelListDto } from './channels.dto.js'
import { ChannelsService } from './channels.service.js'

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
