import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { Retention } from '../storage/retention.js'
import { AdminAuditRepository } from './admin-audit.repository.js'

const BATCH_ROWS = 500

/** Longer than a year: whoever looks once a year finds everything. */
const RETENTION_MS = 400 * 86_400_000

/** Forgets what the audit log holds of long ago. */
@Injectable()
export class AuditRetention extends Retention {
  constructor(database: Database, audit: AdminAuditRepository, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => audit.prune(Date.now() - RETENTION_MS, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'the audit log could not be cut' }, logger)
  }
}
