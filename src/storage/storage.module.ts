import { Injectable } from '@nestjs/common'
import { Metrics } from '../observability/metrics.js'
import { registerGauge, single } from '../observability/readings.js'
import { Readiness } from '../observability/readiness.js'
import { Database } from './database.js'

/** Tells whether the store can be reached, once somebody has asked for it. */
@Injectable()
export class StoreMetrics {
  private wasOpen = false

  constructor(database: Database, readiness: Readiness, metrics: Metrics) {
    database.whenOpen(() => {
      this.wasOpen = true
    })
    registerGauge(
      metrics,
      {
        name: 'gateway_store_up',
        help: '1 while the store can be reached; not shown before it is asked for.',
        labelNames: [],
        aggregator: 'min',
      },
      () => {
        if (readiness.hasLostStore) return single(0)
        return this.wasOpen ? single(1) : []
      },
    )
  }
}
