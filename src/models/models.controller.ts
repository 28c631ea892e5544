import { Controller, Param, Query as QueryString } from '@nestjs/common'
import type { Query } from '../core/dto.js'
import type { RequestContext } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { MODEL, MODELS } from './models.endpoints.js'
import type { MessagesModel, MessagesModelList, Model, ModelList } from './models.dto.js'
import { ModelsService } from './models.service.js'

@Controller()
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Endpoint(MODELS)
  list(@QueryString() query: Query, @CurrentRequest() call: RequestContext): ModelList | MessagesModelList {
    return this.models.list(query, call)
  }

  @Endpoint(MODEL)
  find(@Param('model') segments: readonly string[], @CurrentRequest() call: RequestContext): Model | MessagesModel {
    return this.models.find(segments.join('/'), call)
  }
}
