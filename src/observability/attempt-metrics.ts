import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ERROR_KINDS, type ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Attempt, Call } from '../core/request-context.js'
import { Metrics } from './metrics.js'
import { registerCounter } from './readings.js'
import { CallEndings } from './request-hooks.js'

const ANSWERED = 'ok'

/** The kinds by which an answer that had begun can still fail by its upstream's fault. */
const LATE_FAILURES: ReadonlySet<ErrorKind> = new Set(['upstream_failed', 'upstream_timeout'])

/** Counts what was tried at upstreams for callers, and why calls failed. */
@Injectable()
export class AttemptMetrics {
  /** By channel, then by outcome. Channels that the configuration no longer has are forgotten. */
  private readonly channels = new Map<string, Map<string, number>>()
  /** Each kind from the beginning: a counter that begins with its first failure has not grown by it. */
  private readonly failures = new Map(Object.keys(ERROR_KINDS).map((kind) => [kind as ErrorKind, 0]))

  constructor(
    private readonly store: ConfigStore,
    endings: CallEndings,
    metrics: Metrics,
  ) {
    endings.watch(this.onEnding)
    store.onChange(({ channels }) => {
      const ids = new Set(channels.map(({ id }) => id))
      for (const id of this.channels.keys()) if (!ids.has(id)) this.channels.delete(id)
    })
    this.register(metrics)
  }

  private readonly onEnding = ({ log: { tried, failure } }: Call): void => {
    const kind = failure === undefined ? undefined : failure instanceof GatewayError ? failure.kind : 'internal'
    for (const attempt of tried) this.countAttempt(attempt, attempt === tried[tried.length - 1] ? kind : undefined)
    if (kind !== undefined) this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1)
  }

  /** `kind` is how the call failed that ended with this attempt. */
  private countAttempt({ channelId, failure }: Attempt, kind: ErrorKind | undefined): void {
    const late = kind !== undefined && LATE_FAILURES.has(kind) ? kind : ANSWERED
    const outcome = failure ?? late
    const outcomes = this.channels.get(channelId)
    if (outcomes !== undefined) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    // A call may end after the reload that took its channel away.
    else if (this.isConfigured(channelId)) this.channels.set(channelId, new Map([[outcome, 1]]))
  }

  private isConfigured(channelId: string): boolean {
    return this.store.current.channels.some(({ id }) => id === channelId)
  }

  private register(metrics: Metrics): void {
    registerCounter(
      metrics,
      {
        name: 'gateway_attempts_total',
        help: 'What was tried at upstreams for callers, by how it ended.',
        labelNames: ['channel', 'outcome'],
      },
      () =>
        [...this.channels].flatMap(([channel, outcomes]) =>
          [...outcomes].map(([outcome, value]) => ({ labels: { channel, outcome }, value })),
        ),
    )
    registerCounter(
      metrics,
      { name: 'gateway_failures_total', help: 'Requests that failed, by kind of error.', labelNames: ['kind'] },
      () => [...this.failures].map(([kind, value]) => ({ labels: { kind }, value })),
    )
  }
}
