import { Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { beginTrace, RequestTrace } from './trace-context.js'
import { gatewayVersion } from './logger.js'
import { byLabel, Metrics, registerCounter } from './metrics.js'
import type { SpanCounts, OtlpExporter } from './otlp-exporter.js'
import { RequestHooks } from './request-hooks.js'
import { KnownRoutes, KnownRoutesModule } from './routes.js'
import { spansOf } from './tracing.js'

/** What a collector that does not answer may keep a shutdown waiting. */
const CLOSE_DEADLINE_MS = 2_000

const NOTHING_SENT: SpanCounts = { sent: 0, failed: 0, dropped: 0 }

/**
 * Traces every call where a collector is configured: goes on with the trace of its caller, names each attempt to its
 * upstream, and sends the spans when the call is over. Without a collector nothing is loaded, watched or sent.
 */
@Injectable()
class Tracing implements OnModuleInit, OnApplicationShutdown {
  private sender: OtlpExporter | undefined

  constructor(
    private readonly store: ConfigStore,
    private readonly hooks: RequestHooks,
    private readonly known: KnownRoutes,
    metrics: Metrics,
  ) {
    registerCounter(
      metrics,
      {
        name: 'gateway_trace_spans_total',
        help: 'Spans sent to the collector, refused by it, or dropped because too many waited.',
        labelNames: ['outcome'],
      },
      () => byLabel('outcome', { ...(this.sender?.counts ?? NOTHING_SENT) }),
    )
  }

  async onModuleInit(): Promise<void> {
    const { otlpUrl, otlpHeaders } = this.store.current.observability
    if (otlpUrl === undefined) return
    const { OtlpExporter: OtlpExporter } = await import('./otlp-exporter.js')
    this.onFinished(new OtlpExporter({ url: otlpUrl, headers: otlpHeaders, version: gatewayVersion() }))
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sender?.close(CLOSE_DEADLINE_MS)
  }

  private onFinished(sender: OtlpExporter): void {
    this.sender = sender
    this.hooks.onStarted((call, { headers }) => {
      call.trace = beginTrace(headers, this.store.current.observability.traceSampleRatio)
    })
    this.hooks.onFinished((call, outcome) => {
      const { trace } = call
      if (!(trace instanceof RequestTrace) || !trace.isSampled) return
      for (const span of spansOf(call, trace, outcome, this.known.table.find(call))) sender.send(span)
    })
  }
}

/** OpenTelemetry traces of calls, where a collector is configured. */
@Module({ imports: [KnownRoutesModule], providers: [Tracing] })
export class TracingModule {}
