import { join } from 'node:path'
import { Global, Module } from '@nestjs/common'
import { DatabaseModule } from '../common/database/database.module.js'
import { UsageRecorder } from '../common/usage/usage-recorder.js'
import { type Environment, environmentConfig } from '../config/environment.config.js'
import { KyselyUsageRepository } from './kysely-usage.repository.js'
import { LostUsage } from './lost-usage.js'
import { SpillFolder } from './spill/spill-folder.js'
import { UsageLeftovers } from './spill/usage-leftovers.js'
import { UsageOverflow } from './spill/usage-overflow.js'
import { UsageRecovery } from './spill/usage-recovery.js'
import { StoredUsageReports } from './stored-usage-reports.js'
import { UsageLedger } from './usage-ledger.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageReports } from './usage-reports.js'
import { UsageRetention } from './usage-retention.js'
import { UsageSettlement } from './usage-settlement.js'
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
