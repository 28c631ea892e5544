import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Admission, REFUSAL_REASONS } from './admission.js'

const REPORT_INTERVAL_MS = 1_000

/** Keeps admission going, and says once a second in the log what it has refused, as not every refusal has a line there. */
@Injectable()
export class AdmissionWatch implements OnModuleInit, OnApplicationShutdown {
  private timer: NodeJS.Timeout | undefined
  private reported = 0

  constructor(
    private readonly admission: Admission,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.admission.start()
    this.timer = setInterval(() => {
      this.report()
    }, REPORT_INTERVAL_MS).unref()
  }

  onApplicationShutdown(): void {
    this.admission.stop()
    clearInterval(this.timer)
  }

  private report(): void {
    const { loop, memoryLoad, refused, underWay } = this.admission
    const total = REFUSAL_REASONS.reduce((sum, reason) => sum + refused[reason], 0)
    if (total === this.reported) return
    const figures = { refused: total - this.reported, sinceStart: refused, underWay }
    const load = { loopDelayMs: Math.round(loop.delayMs), memoryShare: Math.round(memoryLoad.share * 100) / 100 }
    this.reported = total
    this.logger.warn({ ...figures, ...load }, 'requests refused: the process cannot keep up')
  }
}
