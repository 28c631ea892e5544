import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { CallbackSender } from './callback-sender.js'
import { CallbackAddress, CallbackAttempt, LocalReceivers } from './callback-attempt.js'
import { KyselyCallbackRepository } from './callback.pg.js'
import {
  CallbacksController,
  CallbacksService,
  UpstreamCallbacksController,
  UpstreamCallbacksService,
} from './callbacks.controller.js'
import { IdempotentReplays, TaskCreation, TaskIntents } from './create-task.js'
import { TaskLoops, TaskPoller, TaskRetention } from './poller.js'
import { TaskRecorder, TaskRefresher, TaskWatchers } from './task-updates.js'
import { TaskMetrics, TaskWorkMetrics } from './task-metrics.js'
import { KyselyTaskRepository } from './task.pg.js'
import { CallbackRepository } from './callback.repository.js'
import { TaskRepository } from './task.repository.js'
import { RefreshThrottle, TaskService } from './task.service.js'
import { Tasks } from './contract.js'
import { TransitionSettings } from './transitions.js'
import { Clock, PollWakeTimer, SystemClock } from './background-work.js'

/** Durable tasks; capabilities use them through the token `Tasks` alone. */
@Module({
  imports: [AuthModule, DatabaseModule, HttpModule],
  controllers: [CallbacksController, UpstreamCallbacksController],
  providers: [
    { provide: Clock, useClass: SystemClock },
    { provide: TaskRepository, useClass: KyselyTaskRepository },
    { provide: CallbackRepository, useClass: KyselyCallbackRepository },
    CallbackAddress,
    CallbackAttempt,
    CallbackSender,
    CallbacksService,
    IdempotentReplays,
    LocalReceivers,
    PollWakeTimer,
    RefreshThrottle,
    TaskCreation,
    TaskIntents,
    TaskLoops,
    TaskMetrics,
    TaskPoller,
    TaskRecorder,
    TaskRefresher,
    TaskRetention,
    TransitionSettings,
    TaskWatchers,
    TaskWorkMetrics,
    UpstreamCallbacksService,
    { provide: Tasks, useClass: TaskService },
  ],
  exports: [Tasks],
})
export class TasksModule {}
