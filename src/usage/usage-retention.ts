import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { Retention } from '../storage/retention.js'
import { UsageRepository } from './usage.repository.js'

const BATCH_ROWS = 1000

/** Forgets records that are older than the operator keeps them. */
@Injectable()
export class UsageRetention extends Retention {
  constructor(records: UsageRepository, database: Database, store: ConfigStore, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => records.prune(Date.now() - store.current.usage.retentionMs, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'old usage records could not be deleted' }, logger)
  }
}
