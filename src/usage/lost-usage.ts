import { Inject, Injectable } from '@nestjs/common'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { type DropReason, UsageMetrics } from './usage-metrics.js'

/**
 * Where records end that a running gateway can neither store nor keep: counted, and whole in the log, one in a line, so
 * that an operator can still book them. What is lost when the process ends is told past the log, by `UsageLeftovers`.
 */
@Injectable()
export class LostUsage {
  constructor(
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  tell(reason: Exclude<DropReason, 'shutdown'>, records: readonly UsageRecord[]): void {
    this.metrics.countDropped(reason, records.length)
    for (const record of records) this.logger.warn({ reason, record }, 'usage')
  }
}
