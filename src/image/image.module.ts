import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { EndedImages } from './ended-images.js'
import { ImageChannels } from './image-tasks.js'
import { ImageController } from './image.controller.js'
import { ImageService } from './image.service.js'
import { KnownChannels } from './known-channels.js'
import { TaskWatches } from './task-watches.js'

/** Image tasks (specification: Image task): read, ask for the seed, follow. */
@Module({
  imports: [AuthModule, ProvidersModule],
  controllers: [ImageController],
  providers: [ImageService, ImageChannels, EndedImages, KnownChannels, TaskWatches],
})
export class ImageModule {}
