import { Controller, Param, Query as QueryString } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger'
import type { Query } from '../core/dto.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { MODEL, MODELS } from './models.endpoints.js'
import type { MessagesModel, MessagesModelList, Model, ModelList } from './models.dto.js'
import { ModelsService } from './models.service.js'

@ApiTags('models')
@ApiBearerAuth()
@Controller()
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Endpoint(MODELS)
  @ApiOperation({ summary: 'The models this key may use' })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  list(@QueryString() query: Query, @CurrentRequest() call: RequestContext): ModelList | MessagesModelList {
    return this.models.list(query, call)
  }

  @Endpoint(MODEL)
  @ApiOperation({ summary: 'One model this key may use' })
  @ApiParam({ name: 'model', type: String })
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  @ApiChatErrors()
  find(@Param('model') model: string, @CurrentRequest() call: RequestContext): Model | MessagesModel {
    return this.models.find(model, call)
  }
}
