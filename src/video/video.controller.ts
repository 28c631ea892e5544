import { Controller, Headers, Param, Query } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { MultiImageVideoDto, TextVideoDto, withoutImages } from './video.dto.js'
import {
  MULTI_IMAGE_CREATE,
  MULTI_IMAGE_EVENTS,
  MULTI_IMAGE_FIND,
  MULTI_IMAGE_LIST,
  TEXT_CREATE,
  TEXT_EVENTS,
  TEXT_FIND,
  TEXT_LIST,
} from './video.endpoints.js'
import { VideoService } from './video.service.js'

const TEXT = 'text2video'

@Controller()
export class TextVideoController {
  constructor(private readonly video: VideoService) {}

  @Endpoint(TEXT_CREATE)
  create(
    @JsonRequest(TEXT_CREATE, TextVideoDto)
    { body, call }: JsonBodyRequest<TextVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<ProviderResponse> {
    return this.video.create(TEXT, body, idempotencyKey, call)
  }

  @Endpoint(TEXT_LIST)
  list(@Query() query: Record<string, unknown>, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.list(TEXT, query, call)
  }

  @Endpoint(TEXT_FIND)
  find(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.find(TEXT, id, call)
  }

  @Endpoint(TEXT_EVENTS)
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.events(TEXT, id, call)
  }
}

const MULTI_IMAGE = 'multi-image2video'

@Controller()
export class MultiImageVideoController {
  constructor(private readonly video: VideoService) {}

  @Endpoint(MULTI_IMAGE_CREATE)
  create(
    @JsonRequest(MULTI_IMAGE_CREATE, MultiImageVideoDto, { reduced: withoutImages })
    { body, call }: JsonBodyRequest<MultiImageVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<ProviderResponse> {
    return this.video.create(MULTI_IMAGE, body, idempotencyKey, call)
  }

  @Endpoint(MULTI_IMAGE_LIST)
  list(@Query() query: Record<string, unknown>, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.list(MULTI_IMAGE, query, call)
  }

  @Endpoint(MULTI_IMAGE_FIND)
  find(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.find(MULTI_IMAGE, id, call)
  }

  @Endpoint(MULTI_IMAGE_EVENTS)
  events(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.video.events(MULTI_IMAGE, id, call)
  }
}
