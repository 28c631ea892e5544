import { join } from 'node:path'
import { Global, Module } from '@nestjs/common'
import { type Environment, environmentConfig } from '../config/environment.js'
import { UsageRecorder } from '../core/usage-record.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { UsageRecovery } from './disk-buffer-recovery.js'
import { UsageLeftovers } from './disk-buffer-shutdown.js'
import { UsageOverflow } from './disk-buffer-writer.js'
import { SpillFolder } from './disk-buffer.js'
import { LostUsage, UsageMetrics } from './usage-metrics.js'
import { UsageLedger, UsageSettlement } from './usage-queue.js'
import { StoredUsageReports } from './usage-reports.js'
import { UsageWriter } from './usage-writer.js'
import { KyselyUsageRepository, UsageRetention } from './usage.pg.js'
import { UsageReports, UsageRepository } from './usage.repository.js'

/** Who used what: records of it, and the reports made of them. Any module may inject `UsageRecorder`. */
@Global()
@Module({
  imports: [DatabaseModule],
  providers: [
    { provide: UsageRepository, useClass: KyselyUsageRepository },
    {
      provide: SpillFolder,
      inject: [environmentConfig.KEY],
      useFactory: ({ dataDirectory }: Environment) => new SpillFolder(join(dataDirectory, 'unstored-usage')),
    },
    UsageMetrics,
    LostUsage,
    UsageSettlement,
    UsageLeftovers,
    UsageRecovery,
    UsageOverflow,
    UsageWriter,
    UsageLedger,
    { provide: UsageRecorder, useExisting: UsageLedger },
    UsageRetention,
    StoredUsageReports,
    { provide: UsageReports, useExisting: StoredUsageReports },
  ],
  exports: [UsageRecorder, UsageReports],
})
export class UsageModule {}
