import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { TASK_ENDPOINTS } from '../tasks/task.endpoints.js'
import { TasksModule } from '../tasks/tasks.module.js'
import { MultiImageVideoController, TextVideoController } from './video.controller.js'
import { VIDEO_ENDPOINTS } from './video.endpoints.js'
import { UnknownTasks, VideoService } from './video.service.js'

/** Video tasks (specification: Video task): create, read, list and follow. */
@Module({
  imports: [AuthModule, TasksModule],
  controllers: [MultiImageVideoController, TextVideoController],
  providers: [VideoService, UnknownTasks],
})
export class VideoModule {
  /** With those of the tasks behind them. */
  static readonly endpoints = [...VIDEO_ENDPOINTS, ...TASK_ENDPOINTS]
}
