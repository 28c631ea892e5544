import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { TasksModule } from '../tasks/tasks.module.js'
import { MultiImageVideoController } from './multi-image-video.controller.js'
import { TextVideoController } from './text-video.controller.js'
import { UnknownTasks } from './unknown-tasks.js'
import { VideoService } from './video.service.js'

/** Video tasks (specification: Video task): create, read, list and follow. */
@Module({
  imports: [AuthModule, ProvidersModule, TasksModule],
  controllers: [MultiImageVideoController, TextVideoController],
  providers: [VideoService, UnknownTasks],
})
export class VideoModule {}
