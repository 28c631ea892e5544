import { Global, Inject, Injectable, Module } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import type { DatabaseSection } from '../config/settings.js'
import type { Logger } from '../observability/logger.js'
import { Metrics, registerGauge, single } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { Database } from './database.js'
import { EmbeddedEngine } from './embedded.js'
import { freeBytesOf } from './embedded-files.js'
import { PostgresEngine } from './postgres.js'
import { StoreDatabase } from './reconnecting-database.js'

/** PostgreSQL where the configuration names one, otherwise the embedded store in `dataDirectory`. Nothing is opened yet. */
export function createDatabase(
  { url, maxConnections }: DatabaseSection,
  dataDirectory: string,
  readiness: Readiness,
  logger: Logger,
): StoreDatabase {
  const engine =
    url === undefined ? new EmbeddedEngine(dataDirectory, logger) : new PostgresEngine({ url, maxConnections }, logger)
  return new StoreDatabase(engine, readiness, logger)
}

/** Shows whether the store can be reached, once it was used, and how much room its disk has. */
@Injectable()
class StoreMetrics {
  private wasOpen = false

  constructor(
    database: Database,
    readiness: Readiness,
    metrics: Metrics,
    @Inject(environmentConfig.KEY) { dataDirectory }: Environment,
  ) {
    database.whenOpen(() => {
      this.wasOpen = true
    })
    registerGauge(
      metrics,
      {
        name: 'gateway_store_up',
        help: '1 while the store can be reached; not shown before it is asked for.',
        labelNames: [],
        aggregator: 'min',
      },
      () => {
        if (readiness.hasLostStore) return single(0)
        return this.wasOpen ? single(1) : []
      },
    )
    registerGauge(
      metrics,
      {
        name: 'gateway_data_free_bytes',
        help: 'Free on the disk of the data folder; with less than 32 MiB the embedded store waits for room.',
        labelNames: [],
        aggregator: 'min',
      },
      async () => {
        const freeBytes = await freeBytesOf(dataDirectory)
        return freeBytes === undefined ? [] : single(freeBytes)
      },
    )
  }
}

/** Gives `Database` to the repositories of every module. Nothing is opened before its first use. */
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
