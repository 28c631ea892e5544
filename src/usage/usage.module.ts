import { join } from 'node:path'
import { Global, Module } from '@nestjs/common'
import { type Environment, environmentConfig } from '../config/environment.js'
import { UsageRecorder } from '../core/usage-record.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { DiskBufferRecovery } from './record-delivery.js'
import { ShutdownBuffer } from './disk-buffer-shutdown.js'
import { DiskBufferWriter } from './disk-buffer-writer.js'
import { DiskBuffer } from './disk-buffer.js'
import { DroppedUsage, UsageMetrics } from './usage-metrics.js'
import { UsageQueue, UsageSettlement } from './usage-queue.js'
import { StoredUsageReports } from './usage-reports.js'
import { UsageWriter } from './usage-writer.js'
import { KyselyUsageRepository, UsageRetention } from './usage.pg.js'
import { UsageReports, UsageRepository } from './usage.repository.js'

/** Usage records and the reports made of them. Any module may inject `UsageRecorder`. */
@Global()
@Module({
  imports: [DatabaseModule],
  providers: [
    { provide: UsageRepository, useClass: KyselyUsageRepository },
    {
      provide: DiskBuffer,
      inject: [environmentConfig.KEY],
      useFactory: ({ dataDirectory }: Environment) => new DiskBuffer(join(dataDirectory, 'unstored-usage')),
    },
    UsageMetrics,
    DroppedUsage,
    UsageSettlement,
    ShutdownBuffer,
    DiskBufferRecovery,
    DiskBufferWriter,
    UsageWriter,
    UsageQueue,
    { provide: UsageRecorder, useExisting: UsageQueue },
    UsageRetention,
    StoredUsageReports,
    { provide: UsageReports, useExisting: StoredUsageReports },
  ],
  exports: [UsageRecorder, UsageReports],
})
export class UsageModule {}
