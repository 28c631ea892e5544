import { Controller, Get, Param, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { CurrentCall } from '../server/json-request.js'
import { type ModelEntry, type ModelList, ModelsService } from './models.service.js'

@ApiTags('models')
@ApiBearerAuth()
@Controller('v1/models')
@UseGuards(KeyGuard)
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Get()
  @ApiOperation({ summary: 'The models this key may use' })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  list(@CurrentCall() call: Call): ModelList {
    return this.models.list(call)
  }

  @Get(':model')
  @ApiOperation({ summary: 'One model this key may use' })
  @ApiParam({ name: 'model', type: String })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  find(@Param('model') model: string, @CurrentCall() call: Call): ModelEntry {
    return this.models.find(model, call)
  }
}
