import { Global, Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { DatabaseModule } from '../common/database/database.module.js'
import { UsageRecorder } from '../common/usage/usage-recorder.js'
import { KyselyUsageRepository } from './kysely-usage.repository.js'
import { StoredUsageReports } from './stored-usage-reports.js'
import { UsageController } from './usage.controller.js'
import { UsageLedger } from './usage-ledger.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageReports } from './usage-reports.js'
import { UsageRetention } from './usage-retention.js'
import { UsageService } from './usage.service.js'
import { UsageWriter } from './usage-writer.js'
import { UsageRepository } from './usage.repository.js'

/** Who used what: records of it, and the reports made of them. Any module may inject `UsageRecorder`. */
@Global()
@Module({
  imports: [AuthModule, DatabaseModule],
  controllers: [UsageController],
  providers: [
    { provide: UsageRepository, useClass: KyselyUsageRepository },
    UsageMetrics,
    UsageWriter,
    UsageLedger,
    { provide: UsageRecorder, useExisting: UsageLedger },
    UsageRetention,
    StoredUsageReports,
    { provide: UsageReports, useExisting: StoredUsageReports },
    UsageService,
  ],
  exports: [UsageRecorder, UsageReports],
})
export class UsageModule {}
