import { Controller, Param } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { IMAGE_EVENTS, IMAGE_FETCH, IMAGE_SEED } from './image.endpoints.js'
import { ImageService } from './image.service.js'

@Controller()
export class ImageController {
  constructor(private readonly images: ImageService) {}

  @Endpoint(IMAGE_FETCH)
  fetch(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.fetch(id, call)
  }

  @Endpoint(IMAGE_SEED)
  seed(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.seed(id, call)
  }

  @Endpoint(IMAGE_EVENTS)
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.images.events(id, call)
  }
}
