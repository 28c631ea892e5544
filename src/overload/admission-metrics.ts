import { Injectable } from '@nestjs/common'
import { Metrics } from '../observability/metrics.js'
import { byLabel, registerCounter, registerGauge, single } from '../observability/readings.js'
import { Admission } from './admission.js'

/** What admission has done and what it goes by; nothing is counted twice for it. */
@Injectable()
export class AdmissionMetrics {
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
