import { Controller, Get, Headers, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { CurrentCall, type JsonCall, JsonRequest } from '../server/json-request.js'
import { ApiVideo, ApiVideoCreate, ApiVideoEvents, ApiVideoFind, ApiVideoList } from './video-operations.decorator.js'
import { TextVideoDto } from './video.dto.js'
import { VideoService } from './video.service.js'

const TEXT = 'text2video'

@ApiVideo()
@Controller(`vidgen/v1/videos/${TEXT}`)
@UseGuards(KeyGuard)
export class TextVideoController {
  constructor(private readonly video: VideoService) {}

  @Post()
  @HttpCode(200)
  @ApiVideoCreate('Video from a text')
  create(
    @JsonRequest(TextVideoDto)
    { body, call }: JsonCall<TextVideoDto>,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
  ): Promise<UpstreamAnswer> {
    return this.video.create(TEXT, body, idempotencyKey, call)
  }

  @Get()
  @ApiVideoList('Your text-to-video tasks, newest first')
  list(@Query() query: Record<string, unknown>, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.list(TEXT, query, call)
  }

  @Get(':id')
  @ApiVideoFind('One text-to-video task')
  find(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.find(TEXT, id, call)
  }

  @Get(':id/events')
  @ApiVideoEvents('The changes of one text-to-video task as they happen')
  events(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.video.events(TEXT, id, call)
  }
}
