import type { DatabaseSection } from '../../config/gateway-config.js'
import type { Logger } from '../observability/logger.js'
import type { Readiness } from '../observability/readiness.js'
import { EmbeddedEngine } from './embedded/embedded-engine.js'
import { PostgresEngine } from './postgres-engine.js'
import { StoreDatabase } from './store-database.js'

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
