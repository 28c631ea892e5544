import type { Logger } from '../observability/logger.js'
import { type UsageEntry, UsageRecorder } from './usage-recorder.js'

/** One line per entry in the log. */
export class LogUsageRecorder extends UsageRecorder {
  constructor(private readonly logger: Pick<Logger, 'info'>) {
    super()
  }

  record({ callId, ...entry }: UsageEntry): void {
    this.logger.info({ requestId: callId, ...entry }, 'usage')
  }
}
