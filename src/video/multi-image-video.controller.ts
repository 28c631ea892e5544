import { Controller, Get, Headers, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common'
import { KeyGuard } from '../common/auth/key.guard.js'
import type { Call } from '../common/http/call.js'
import { CurrentCall, type JsonCall, JsonRequest } from '../common/http/json-request.decorator.js'
import type { UpstreamAnswer } from '../common/http/upstream-answer.js'
import { MultiImageVideoDto } from './multi-image-video.dto.js'
import { ApiVideo, ApiVideoCreate, ApiVideoEvents, ApiVideoFind, ApiVideoList } from './video-operations.decorator.js'
import { VideoService } from './video.service.js'

const KIND = 'multi-image2video'

@ApiVideo()
@Controller(`vidgen/v1/videos/${KIND}`)
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
    return this.video.create(KIND, body, idempotencyKey, call)
  }

  @Get()
  @ApiVideoList('Your multi-image tasks, newest first')
  list(@Query() query: Record<string, unknown>, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.list(KIND, query, call)
  }

  @Get(':id')
  @ApiVideoFind('One multi-image task')
  find(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.find(KIND, id, call)
  }

  @Get(':id/events')
  @ApiVideoEvents('The changes of one multi-image task as they happen')
  events(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.events(KIND, id, call)
  }
}
