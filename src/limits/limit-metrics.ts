import { LIMIT_NAMES, type LimitName } from '../core/limit-names.js'
import type { Metrics } from '../observability/metrics.js'
import { byLabel, registerCounter, registerGauge, single } from '../observability/readings.js'

/** What Prometheus learns of limits. */
export class LimitMetrics {
  private readonly refusals = Object.fromEntries(LIMIT_NAMES.map((name) => [name, 0])) as Record<LimitName, number>

  constructor(metrics: Metrics, isRedisAway: () => boolean) {
    registerCounter(
      metrics,
      {
        name: 'gateway_limit_refusals_total',
        help: 'Requests, and work of realtime sessions, refused by a limit of their key',
        labelNames: ['limit'],
      },
      () => byLabel('limit', this.refusals),
    )
    registerGauge(
      metrics,
      {
        name: 'gateway_redis_away',
        help: 'Redis is configured and away: each process keeps to its own share of the limits',
        labelNames: [],
        aggregator: 'max',
      },
      () => single(Number(isRedisAway())),
    )
  }

  readonly noteRefusal = (name: LimitName): void => {
    this.refusals[name]++
  }
}
