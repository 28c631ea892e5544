import { Controller, Get, Param, UseGuards } from '@nestjs/common'
import { KeyGuard } from '../auth/key.guard.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { CurrentCall } from '../server/json-request.js'
import { ApiImage, ApiImageEvents, ApiImageTask } from './image-operations.decorator.js'
import { ImageService } from './image.service.js'

@ApiImage()
@Controller('imggen/task')
@UseGuards(KeyGuard)
export class ImageController {
  constructor(private readonly images: ImageService) {}

  @Get(':id/fetch')
  @ApiImageTask('One image task')
  fetch(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.images.fetch(id, call)
  }

  @Get(':id/image-seed')
  @ApiImageTask('One image task with the seed of its picture in properties.seed; may take a minute')
  seed(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.images.seed(id, call)
  }

  @Get(':id/events')
  @ApiImageEvents('The changes of one image task as they happen')
  events(@Param('id') id: string, @CurrentCall() call: Call): Promise<UpstreamAnswer> {
    return this.images.events(id, call)
  }
}
