import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger'
import { ApiAdmin, ApiAdminErrors } from './admin-operations.decorator.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { ReloadDto } from './reload.dto.js'
import { ReloadService } from './reload.service.js'

@ApiAdmin()
@Controller('admin/v1/config')
@UseGuards(AdminGuard)
export class ReloadController {
  constructor(private readonly configuration: ReloadService) {}

  @Post('reload')
  @HttpCode(200)
  @ApiOperation({ summary: 'Read the configuration file anew, for this gateway and all its workers' })
  @ApiOkResponse({ type: ReloadDto })
  @ApiAdminErrors([401, 404, 422, 429, 503])
  async reload(@CurrentAdmin() admin: Admin): Promise<ReloadDto> {
    return new ReloadDto(await this.configuration.reload(admin))
  }
}
