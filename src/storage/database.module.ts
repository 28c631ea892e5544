import { Global, Module } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { createDatabase } from './create-database.js'
import { Database } from './database.js'
import { StoreMetrics } from './storage.module.js'

/** Gives `Database` to the repositories of every module. Nothing is opened before somebody asks. */
@Global()
@Module({
  providers: [
    {
      provide: Database,
      inject: [ConfigStore, environmentConfig.KEY, Readiness, LOGGER],
      useFactory: (store: ConfigStore, environment: Environment, readiness: Readiness, logger: Logger): Database =>
        createDatabase(store.current.database, environment.dataDirectory, readiness, logger),
    },
    StoreMetrics,
  ],
  exports: [Database],
})
export class DatabaseModule {}
