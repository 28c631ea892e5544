import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { IMAGE_EVENTS, IMAGE_FETCH, IMAGE_SEED } from './image.endpoints.js'
import { EndedImages, ImageChannels, KnownChannels } from './image-tasks.js'
import { ImageController } from './image.controller.js'
import { ImageService, TaskWatches } from './image.service.js'

/** Image tasks (specification: Image task): read, ask for the seed, follow. */
@Module({
  imports: [AuthModule],
  controllers: [ImageController],
  providers: [ImageService, ImageChannels, EndedImages, KnownChannels, TaskWatches],
})
export class ImageModule {
  static readonly endpoints = [IMAGE_FETCH, IMAGE_SEED, IMAGE_EVENTS]
}
