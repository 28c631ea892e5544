import { join } from 'node:path'
import { Global, Module } from '@nestjs/common'
import { type Environment, environmentConfig } from '../config/environment.js'
import { UsageRecorder } from '../core/usage-recorder.js'
import { DatabaseModule } from '../storage/database.module.js'
import { UsageRecovery } from './disk-buffer-recovery.js'
import { UsageOverflow } from './disk-buffer-writer.js'
import { SpillFolder } from './disk-buffer.js'
import { KyselyUsageRepository } from './kysely-usage.repository.js'
import { LostUsage } from './lost-usage.js'
import { UsageLeftovers } from './usage-leftovers.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageLedger } from './usage-queue.js'
import { StoredUsageReports } from './usage-reports.js'
import { UsageRetention } from './usage-retention.js'
import { UsageSettlement } from './usage-settlement.js'
import { UsageReports } from './usage-usage-reports.js'
import { UsageWriter } from './usage-writer.js'
import { UsageRepository } from './usage.repository.js'

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
