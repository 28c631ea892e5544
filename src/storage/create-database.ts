import type { DatabaseSection } from '../config/settings.js'
import type { Logger } from '../observability/logger.js'
import type { Readiness } from '../observability/readiness.js'
import { EmbeddedEngine } from './embedded.js'
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
