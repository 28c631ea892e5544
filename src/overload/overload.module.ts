import {
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { byLabel, Metrics, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { Admission, REFUSAL_REASONS } from './admission.js'

/** What admission has done and what it goes by; nothing is counted twice for it. */
@Injectable()
class AdmissionMetrics {
  constructor(metrics: Metrics, admission: Admission) {
    const gauge = (name: string, help: string, read: () => number, aggregator: 'sum' | 'max' = 'sum'): void => {
      registerGauge(metrics, { name: `gateway_admission_${name}`, help, labelNames: [], aggregator }, () =>
        single(read()),
      )
    }
    registerCounter(
      metrics,
      {
        name: 'gateway_admission_refused_total',
        help: 'Requests refused because the process could not keep up, by reason; few of them are in gateway_requests_total',
        labelNames: ['reason'],
      },
      () => byLabel('reason', { ...admission.refused, bytes: admission.memory.refused }),
    )
    registerCounter(
      metrics,
      {
        name: 'gateway_admission_share_refused_total',
        help: 'Refused although there was room, as the caller held its share',
        labelNames: ['resource'],
      },
      () => byLabel('resource', { requests: admission.places.refused, bytes: admission.memory.share.refused }),
    )
    gauge('requests', 'Requests under way, open streams and sockets included', () => admission.underWay)
    gauge('bytes', 'Bytes of bodies and answers held in memory', () => admission.memory.bytes)
    gauge(
      'loop_delay_seconds',
      'What the last turn of the event loop lasted',
      () => admission.loop.delayMs / 1000,
      'max',
    )
    gauge('memory_ratio', 'Memory used of what may be used', () => admission.memoryLoad.share, 'max')
    gauge(
      'shedding',
      '1 while new requests are refused for the event loop',
      () => Number(admission.loop.isShedding),
      'max',
    )
  }
}

const REPORT_INTERVAL_MS = 1_000

/** Keeps admission going, and says once a second in the log what it has refused, as not every refusal has a line there. */
@Injectable()
class AdmissionWatch implements OnModuleInit, OnApplicationShutdown {
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

/** Who is let in; the server shares `Admission`, as it answers before Nest does. */
@Module({})
export class OverloadModule {
  static forRoot(admission: Admission): DynamicModule {
    return {
      module: this,
      providers: [{ provide: Admission, useValue: admission }, AdmissionMetrics, AdmissionWatch],
    }
  }
}
