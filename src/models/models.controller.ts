import { Controller, Get, Param, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../common/auth/key.guard.js'
import { ApiChatErrors } from '../common/errors/api-errors.decorator.js'
import type { Call } from '../common/http/call.js'
import { CurrentCall } from '../common/http/json-request.decorator.js'
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
