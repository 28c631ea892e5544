import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { DatabaseModule } from '../storage/database.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { CallbackAddress } from './callback-address.js'
import { CallbackSender } from './callback-delivery.js'
import { CallbackAttempt } from './callback-request.js'
import { KyselyCallbackRepository } from './callback.pg.js'
import { CallbackRepository } from './callback.repository.js'
import { CallbacksController } from './callbacks.controller.js'
import { CallbacksService } from './callbacks.service.js'
import { Clock, SystemClock } from './clock.js'
import { TaskCreation } from './create-task.js'
import { IdempotentReplays } from './idempotent-replays.js'
import { PollAlarm } from './poll-alarm.js'
import { TaskPoller } from './poller.js'
import { TaskRecorder } from './record-task.js'
import { RefreshGate } from './refresh-gate.js'
import { TaskRefresh } from './refresh-task.js'
import { TaskIntents } from './task-intents.js'
import { TaskLoops } from './task-loops.js'
import { TaskMetrics, TaskWorkMetrics } from './task-metrics.js'
import { TaskRetention } from './task-retention.js'
import { TaskTerms } from './task-terms.js'
import { TaskWatchers } from './task-watchers.js'
import { KyselyTaskRepository } from './task.pg.js'
import { TaskRepository } from './task.repository.js'
import { TaskEngine } from './task.service.js'
import { Tasks } from './tasks.js'
import { UpstreamCallbacksController } from './upstream-callbacks.controller.js'
import { UpstreamCallbacksService } from './upstream-callbacks.service.js'

/** Durable tasks, behind the one token capabilities know: `Tasks`. */
@Module({
  imports: [AuthModule, DatabaseModule, HttpModule, ProvidersModule],
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
    PollAlarm,
    RefreshGate,
    TaskCreation,
    TaskIntents,
    TaskLoops,
    TaskMetrics,
    TaskPoller,
    TaskRecorder,
    TaskRefresh,
    TaskRetention,
    TaskTerms,
    TaskWatchers,
    TaskWorkMetrics,
    UpstreamCallbacksService,
    { provide: Tasks, useClass: TaskEngine },
  ],
  exports: [Tasks],
})
export class TasksModule {}
