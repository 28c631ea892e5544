import { Controller, Get, Headers, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { CurrentCall, type JsonCall, JsonRequest } from '../server/json-request.js'
import { MultiImageVideoDto } from './multi-image-video.dto.js'
import { ApiVideo, ApiVideoCreate, ApiVideoEvents, ApiVideoFind, ApiVideoList } from './video-operations.decorator.js'
import { VideoService } from './video.service.js'

const MULTI_IMAGE = 'multi-image2video'

@ApiVideo()
@Controller(`vidgen/v1/videos/${MULTI_IMAGE}`)
@UseGuards(KeyGuard)
export class MultiImageVideoController {
  constructor(private readonly video: VideoService) {}

  @Post()
  @HttpCode(200)
  @ApiVideoCreate('Video from several reference images')
  create(
    @JsonRequest(MultiImageVideoDto, { limit: 'imageBodyBytes', forgotten: ['image_list'] })
    { body, call }: JsonCall<MultiImageVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<UpstreamAnswer> {
    return this.video.create(MULTI_IMAGE, body, idempotencyKey, call)
  }

  @Get()
  @ApiVideoList('Your multi-image tasks, newest first')
  list(@Query() query: Record<string, unknown>, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.list(MULTI_IMAGE, query, call)
  }

  @Get(':id')
  @ApiVideoFind('One multi-image task')
  find(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.find(MULTI_IMAGE, id, call)
  }

  @Get(':id/events')
  @ApiVideoEvents('The changes of one multi-image task as they happen')
  events(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.events(MULTI_IMAGE, id, call)
  }
}
