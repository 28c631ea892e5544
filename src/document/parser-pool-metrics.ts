import { Injectable } from '@nestjs/common'
import { Metrics } from '../observability/metrics.js'
import { byLabel, registerGauge } from '../observability/readings.js'
import { ParserPool } from './parser-pool.js'

/** How busy the readers of documents are. */
@Injectable()
export class ParserPoolMetrics {
  constructor(pool: ParserPool, metrics: Metrics) {
    registerGauge(
      metrics,
      { name: 'gateway_documents', help: 'Documents being read or waiting for a process.', labelNames: ['state'] },
      () => byLabel('state', { ...pool.load }),
    )
  }
}
