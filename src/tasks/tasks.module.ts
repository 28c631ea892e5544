import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { DatabaseModule } from '../common/database/database.module.js'
import { HttpModule } from '../common/http/http.module.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { CallbackAddress } from './callback-address.js'
import { CallbackAttempt } from './callback-sender-attempt.js'
import { CallbackSender } from './callback-sender.js'
import { CallbackRepository } from './callback.repository.js'
import { CallbacksController } from './callbacks.controller.js'
import { CallbacksService } from './callbacks.service.js'
import { Clock, SystemClock } from './clock.js'
import { TaskCreation } from './create-task.js'
import { IdempotentReplays } from './idempotent-replays.js'
import { KyselyCallbackRepository } from './kysely-callback.repository.js'
import { KyselyTaskRepository } from './kysely-task.repository.js'
import { PollAlarm } from './poll-alarm.js'
import { RefreshGate } from './refresh-gate.js'
import { TaskEngine } from './task-engine.js'
import { TaskIntents } from './task-intents.js'
import { TaskLoops } from './task-loops.js'
import { TaskMetrics, TaskWorkMetrics } from './task-metrics.js'
import { TaskPoller } from './task-poller.js'
import { TaskRecorder } from './task-recorder.js'
import { TaskRefresh } from './task-refresh.js'
import { TaskRetention } from './task-retention.js'
import { TaskTerms } from './task-terms.js'
import { TaskWatchers } from './task-watchers.js'
import { TaskRepository } from './task.repository.js'
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
