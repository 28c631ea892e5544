import { type DynamicModule, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { gatewayVersion, type Logger } from './logger.js'
import { byLabel, Metrics, registerCounter } from './metrics.js'
import { metricsAddress, MetricsServer } from './metrics-server.js'
import type { OtlpExporter, SpanCounts } from './otlp-exporter.js'
import { GatewayMetrics, ProcessMetrics } from './process-metrics.js'
import { Readiness } from './readiness.js'
import { RequestHooks } from './request-hooks.js'
import { AttemptMetrics, RequestMetrics } from './request-metrics.js'
import { KnownRoutes, KnownRoutesModule } from './routes.js'
import { beginTrace, RequestTrace, spansOf } from './tracing.js'

/** The process's own log, for lines that are about no single request; injected as `Logger`. */
export const LOGGER = Symbol('logger')

/** What the process says about itself; the server shares `Readiness` and `RequestHooks`, as it answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, endings: RequestHooks, logger: Logger): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: RequestHooks, useValue: endings },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, RequestHooks, Metrics, LOGGER],
    }
  }
}

/** What the gateway counts about itself, and where it tells it; listens when `MetricsServer.listen` is called. */
@Module({
  imports: [KnownRoutesModule],
  providers: [
    AttemptMetrics,
    RequestMetrics,
    GatewayMetrics,
    ProcessMetrics,
    {
      provide: MetricsServer,
      inject: [ConfigStore, Metrics],
      useFactory: (store: ConfigStore, metrics: Metrics) =>
        new MetricsServer(metricsAddress(store.current), () => metrics.collectText()),
    },
  ],
})
export class MetricsModule {}

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
    const { OtlpExporter } = await import('./otlp-exporter.js')
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
